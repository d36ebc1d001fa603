"""The management API of one server, call by call.

Must not break: lists come whole, however many pages the server cuts them into.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Raw, Struct
from msgspec.json import decode

from cynosure.client.api import segment
from cynosure.client.changes import Keyed
from cynosure.client.management_types import (
    Catalog,
    CatalogRole,
    Entity,
    Grant,
    Principal,
    PrincipalRole,
    PrincipalWithCredentials,
)

T = TypeVar("T")

BASE: Final = "/api/management/v1"
_PAGE: Final = 1000


class _Page(Struct, rename="camel"):
    catalogs: list[Raw] = []
    principals: list[Raw] = []
    roles: list[Raw] = []
    grants: list[Raw] = []
    next_page_token: str | None = None


class Management(Keyed):
    """Catalogs, principals, roles and grants of one realm."""

    # --- catalogs ---------------------------------------------------------------------------------

    async def list_catalogs(self) -> list[Catalog]:
        """All that may be seen."""
        return await self._list("catalogs", Catalog, "catalogs")

    async def create_catalog(self, catalog: Mapping[str, Any]) -> Catalog:
        """Create a catalog from its JSON form."""
        return await self._send("POST", Catalog, "catalogs", body={"catalog": catalog})

    async def load_catalog(self, name: str) -> Catalog:
        """One catalog."""
        return await self._load(Catalog, "catalogs", name)

    async def update_catalog(
        self,
        current: Catalog,
        *,
        properties: Mapping[str, str],
        storage: Mapping[str, Any] | None = None,
        connection: Mapping[str, Any] | None = None,
    ) -> Catalog:
        """Replace properties, and what else is given, of a catalog that is still as `current`."""
        body: dict[str, Any] = {"currentEntityVersion": current.entity_version, "properties": properties}
        if storage is not None:
            body["storageConfigInfo"] = storage
        if connection is not None:
            body["connectionConfigInfo"] = connection
        return await self._send("PUT", Catalog, "catalogs", current.name, body=body)

    async def delete_catalog(self, name: str) -> None:
        """Delete an empty catalog."""
        await self._call("DELETE", "catalogs", name)

    # --- principals -------------------------------------------------------------------------------

    async def list_principals(self) -> list[Principal]:
        """All principals."""
        return await self._list("principals", Principal, "principals")

    async def create_principal(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        is_rotation_required: bool = False,
    ) -> PrincipalWithCredentials:
        """Create a principal; its secret is in the answer and nowhere else."""
        principal = {"name": name, "properties": properties}
        body = {"principal": principal, "credentialRotationRequired": is_rotation_required}
        return await self._send("POST", PrincipalWithCredentials, "principals", body=body)

    async def load_principal(self, name: str) -> Principal:
        """One principal."""
        return await self._load(Principal, "principals", name)

    async def update_principal(self, current: Principal, properties: Mapping[str, str]) -> Principal:
        """Replace the properties of a principal that is still as `current`."""
        body = _change(current, properties)
        return await self._send("PUT", Principal, "principals", current.name, body=body)

    async def delete_principal(self, name: str) -> None:
        """Delete a principal; its tokens end with it."""
        await self._call("DELETE", "principals", name)

    async def rotate_credentials(self, name: str) -> PrincipalWithCredentials:
        """A new secret; the one before stays good until the next rotation."""
        return await self._send("POST", PrincipalWithCredentials, "principals", name, "rotate")

    async def reset_credentials(
        self, name: str, *, client_id: str | None = None, client_secret: str | None = None
    ) -> PrincipalWithCredentials:
        """New credentials, made or given; no earlier secret stays good."""
        given = {"clientId": client_id, "clientSecret": client_secret}
        body = {key: value for key, value in given.items() if value is not None}
        return await self._send("POST", PrincipalWithCredentials, "principals", name, "reset", body=body)

    async def trust_service(self, name: str, *, is_trusted: bool) -> None:
        """Let a principal act on behalf of others, or no longer."""
        body = {"trusted": is_trusted}
        await self._call("PUT", "cynosure", "principals", name, "trusted-service", body=body)

    async def list_roles_of_principal(self, principal: str) -> list[PrincipalRole]:
        """The principal roles that are assigned to a principal."""
        return await self._list("roles", PrincipalRole, "principals", principal, "principal-roles")

    async def assign_principal_role(self, principal: str, role: str) -> None:
        """Assign a principal role. Harmless when it is."""
        body = {"principalRole": {"name": role}}
        await self._call("PUT", "principals", principal, "principal-roles", body=body)

    async def revoke_principal_role(self, principal: str, role: str) -> None:
        """Take a principal role away."""
        await self._call("DELETE", "principals", principal, "principal-roles", role)

    # --- principal roles --------------------------------------------------------------------------

    async def list_principal_roles(self) -> list[PrincipalRole]:
        """All principal roles."""
        return await self._list("roles", PrincipalRole, "principal-roles")

    async def create_principal_role(
        self, name: str, properties: Mapping[str, str], *, is_federated: bool = False
    ) -> PrincipalRole:
        """Create a principal role."""
        role = {"name": name, "properties": properties, "federated": is_federated}
        # 201 without a body is what Apache Polaris answers; the role is asked for where it is needed.
        await self._call("POST", "principal-roles", body={"principalRole": role})
        return PrincipalRole(name, dict(properties), federated=is_federated)

    async def load_principal_role(self, name: str) -> PrincipalRole:
        """One principal role."""
        return await self._load(PrincipalRole, "principal-roles", name)

    async def update_principal_role(
        self, current: PrincipalRole, properties: Mapping[str, str]
    ) -> PrincipalRole:
        """Replace the properties of a principal role that is still as `current`."""
        body = _change(current, properties)
        return await self._send("PUT", PrincipalRole, "principal-roles", current.name, body=body)

    async def delete_principal_role(self, name: str) -> None:
        """Delete a principal role; who had it has it no longer."""
        await self._call("DELETE", "principal-roles", name)

    async def list_assignees(self, role: str) -> list[Principal]:
        """The principals that have a principal role."""
        return await self._list("principals", Principal, "principal-roles", role, "principals")

    async def list_catalog_roles_of(self, principal_role: str, catalog: str) -> list[CatalogRole]:
        """The catalog roles in a catalog that a principal role has."""
        return await self._list(
            "roles", CatalogRole, "principal-roles", principal_role, "catalog-roles", catalog
        )

    async def assign_catalog_role(self, principal_role: str, catalog: str, role: str) -> None:
        """Assign a catalog role to a principal role. Harmless when it is."""
        body = {"catalogRole": {"name": role}}
        await self._call("PUT", "principal-roles", principal_role, "catalog-roles", catalog, body=body)

    async def revoke_catalog_role(self, principal_role: str, catalog: str, role: str) -> None:
        """Take a catalog role away from a principal role."""
        await self._call("DELETE", "principal-roles", principal_role, "catalog-roles", catalog, role)

    # --- catalog roles and grants -----------------------------------------------------------------

    async def list_catalog_roles(self, catalog: str) -> list[CatalogRole]:
        """All roles of a catalog."""
        return await self._list("roles", CatalogRole, "catalogs", catalog, "catalog-roles")

    async def create_catalog_role(
        self, catalog: str, name: str, properties: Mapping[str, str]
    ) -> CatalogRole:
        """Create a catalog role."""
        body = {"catalogRole": {"name": name, "properties": properties}}
        await self._call("POST", "catalogs", catalog, "catalog-roles", body=body)
        return CatalogRole(name, dict(properties))

    async def load_catalog_role(self, catalog: str, name: str) -> CatalogRole:
        """One catalog role."""
        return await self._load(CatalogRole, "catalogs", catalog, "catalog-roles", name)

    async def update_catalog_role(
        self, catalog: str, current: CatalogRole, properties: Mapping[str, str]
    ) -> CatalogRole:
        """Replace the properties of a catalog role that is still as `current`."""
        body = _change(current, properties)
        return await self._send(
            "PUT", CatalogRole, "catalogs", catalog, "catalog-roles", current.name, body=body
        )

    async def delete_catalog_role(self, catalog: str, name: str) -> None:
        """Delete a catalog role with its grants."""
        await self._call("DELETE", "catalogs", catalog, "catalog-roles", name)

    async def list_assignees_of_catalog_role(self, catalog: str, role: str) -> list[PrincipalRole]:
        """The principal roles that have a catalog role."""
        return await self._list(
            "roles", PrincipalRole, "catalogs", catalog, "catalog-roles", role, "principal-roles"
        )

    async def list_grants(self, catalog: str, role: str) -> list[Grant]:
        """What is granted to a catalog role."""
        return await self._list("grants", Grant, "catalogs", catalog, "catalog-roles", role, "grants")

    async def grant(self, catalog: str, role: str, grant: Grant) -> None:
        """Grant a privilege. Harmless when it is."""
        await self._call("PUT", *_grants(catalog, role), body={"grant": _to_wire(grant)})

    async def revoke(self, catalog: str, role: str, grant: Grant) -> None:
        """Take a privilege away."""
        await self._call("POST", *_grants(catalog, role), body={"grant": _to_wire(grant)})

    # --- our own ----------------------------------------------------------------------------------

    async def explain_access(self, question: Mapping[str, Any], answer: type[T]) -> T:
        """Why a principal may or may not do something."""
        # Asks and changes nothing: no key.
        path = _path(("cynosure", "explain-access"))
        return (await self._api.request("POST", path, body=question)).decode(answer)

    async def check_storage(self, catalog: str, answer: type[T], *, timeout_s: float) -> T:
        """Whether the storage of a catalog works."""
        path = _path(("cynosure", "catalogs", catalog, "check-storage"))
        return (await self._api.request("POST", path, timeout_s=timeout_s)).decode(answer)

    async def load_remote_status(self, catalog: str, answer: type[T]) -> T:
        """How the remote of a federated catalog is."""
        return await self._load(answer, "cynosure", "catalogs", catalog, "remote")

    async def reconcile(
        self, catalog: str, query: Mapping[str, str], answer: type[T], *, timeout_s: float
    ) -> T:
        """Compare a page of what is known of a remote with what it has."""
        path = _path(("cynosure", "catalogs", catalog, "reconcile"))
        return (await self._api.request("POST", path, query=query, timeout_s=timeout_s)).decode(answer)

    async def migrate(self, catalog: str, step: Mapping[str, Any], answer: type[T], *, timeout_s: float) -> T:
        """One step of a federated catalog's way into our own hands. Done twice, it is done once: no key."""
        path = _path(("cynosure", "catalogs", catalog, "migration"))
        return (await self._api.request("POST", path, body=step, timeout_s=timeout_s)).decode(answer)

    async def whoami(self, answer: type[T]) -> T:
        """Who this client is to the server."""
        return await self._load(answer, "cynosure", "realm")

    async def read_events(self, query: Mapping[str, str], answer: type[T], *, timeout_s: float) -> T:
        """One page of what was done and what was refused."""
        path = _path(("cynosure", "events"))
        return (await self._api.request("GET", path, query=query, timeout_s=timeout_s)).decode(answer)

    async def _list(self, field: str, kind: type[T], *path: str) -> list[T]:
        found: list[T] = []
        query = {"pageSize": str(_PAGE)}
        while True:
            page = (await self._api.request("GET", _path(path), query=query)).decode(_Page)
            found += [decode(each, type=kind) for each in getattr(page, field)]
            if not page.next_page_token:
                return found
            query = {**query, "pageToken": page.next_page_token}

    async def _load(self, answer: type[T], *path: str) -> T:
        return (await self._api.request("GET", _path(path))).decode(answer)

    async def _send(self, method: str, answer: type[T], *path: str, body: Any = None) -> T:
        return (await self._change(method, _path(path), body=body)).decode(answer)

    async def _call(self, method: str, *path: str, body: Any = None) -> None:
        await self._change(method, _path(path), body=body)


def _path(names: tuple[str, ...]) -> str:
    return "/".join((BASE, *map(segment, names)))


def _grants(catalog: str, role: str) -> tuple[str, ...]:
    return "catalogs", catalog, "catalog-roles", role, "grants"


def _change(current: Entity, properties: Mapping[str, str]) -> dict[str, Any]:
    return {"currentEntityVersion": current.entity_version, "properties": properties}


def _to_wire(grant: Grant) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": grant.type, "privilege": grant.privilege}
    if grant.type != "catalog":
        wire["namespace"] = grant.namespace
    if grant.type in ("table", "view", "policy"):
        wire[f"{grant.type}Name"] = grant.name
    return wire
