"""An administrator of a realm: makes catalogs and principals, gives and takes rights, by the management API.

    admin = Admin(http)                                       # a client whose base is the server's address
    reader = await admin.create_user("ann", "lake", Grant("TABLE_READ_DATA"))

A maintainer must not break: everything goes over the wire as any administrator would send it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.login import Credential

MANAGEMENT = "/api/management/v1"


class Grant(NamedTuple):
    """A privilege on a catalog, or on something in it."""

    privilege: str
    namespace: tuple[str, ...] = ()
    table: str = ""
    view: str = ""

    def to_wire(self) -> dict[str, Any]:
        """As the management API takes it."""
        if not self.namespace:
            return {"type": "catalog", "privilege": self.privilege}
        inside = {"namespace": list(self.namespace), "privilege": self.privilege}
        if self.table:
            return {"type": "table", "tableName": self.table, **inside}
        if self.view:
            return {"type": "view", "viewName": self.view, **inside}
        return {"type": "namespace", **inside}


@dataclass(frozen=True, slots=True)
class Admin:
    """Sends what an administrator sends, and fails when it is refused."""

    http: httpx.AsyncClient

    async def create_catalog(
        self,
        name: str,
        location: str,
        *,
        allowed: Sequence[str] = (),
        storage: Mapping[str, Any] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """A catalog; of local files unless `storage` says otherwise."""
        wanted = {
            "type": "INTERNAL",
            "name": name,
            "properties": {"default-base-location": location, **(properties or {})},
            "storageConfigInfo": {
                "storageType": "FILE",
                "allowedLocations": [location, *allowed],
                **(storage or {}),
            },
        }
        await self.send("POST", "/catalogs", {"catalog": wanted})

    async def create_principal(self, name: str) -> Credential:
        """A principal that may do nothing yet."""
        made = await self.send("POST", "/principals", {"principal": {"name": name}})
        return read_credential(made)

    async def delete_principal(self, name: str) -> None:
        """And with it all of its tokens."""
        await self.send("DELETE", f"/principals/{quote(name, safe='')}")

    async def rotate(self, name: str) -> Credential:
        """Another secret for oneself; the one before stays good."""
        return read_credential(await self.send("POST", f"/principals/{quote(name, safe='')}/rotate"))

    async def reset(self, name: str) -> Credential:
        """Another secret; none of those before stays good."""
        return read_credential(await self.send("POST", f"/principals/{quote(name, safe='')}/reset", {}))

    async def create_role(self, name: str) -> None:
        """A principal role that nobody has yet."""
        await self.send("POST", "/principal-roles", {"principalRole": {"name": name}})

    async def assign_role(self, principal: str, role: str) -> None:
        """Give a principal a role."""
        await self.send("PUT", f"/principals/{principal}/principal-roles", {"principalRole": {"name": role}})

    async def take_role(self, principal: str, role: str) -> None:
        """Take a role from a principal."""
        await self.send("DELETE", f"/principals/{principal}/principal-roles/{role}")

    async def create_catalog_role(self, catalog: str, name: str) -> None:
        """A catalog role without any privilege."""
        await self.send("POST", f"/catalogs/{catalog}/catalog-roles", {"catalogRole": {"name": name}})

    async def assign_catalog_role(self, catalog: str, role: str, principal_role: str) -> None:
        """Give a principal role what a catalog role has."""
        path = f"/principal-roles/{principal_role}/catalog-roles/{catalog}"
        await self.send("PUT", path, {"catalogRole": {"name": role}})

    async def take_catalog_role(self, catalog: str, role: str, principal_role: str) -> None:
        """Take it back."""
        await self.send("DELETE", f"/principal-roles/{principal_role}/catalog-roles/{catalog}/{role}")

    async def grant(self, catalog: str, role: str, grant: Grant) -> None:
        """Give a privilege to a catalog role."""
        await self.send("PUT", f"/catalogs/{catalog}/catalog-roles/{role}/grants", {"grant": grant.to_wire()})

    async def revoke(self, catalog: str, role: str, grant: Grant) -> None:
        """Take a privilege from a catalog role."""
        await self.send(
            "POST", f"/catalogs/{catalog}/catalog-roles/{role}/grants", {"grant": grant.to_wire()}
        )

    async def grant_content(self, catalog: str) -> None:
        """Let the administrators of a catalog read and write its data, which they may not by themselves."""
        await self.grant(catalog, "catalog_admin", Grant("CATALOG_MANAGE_CONTENT"))

    async def create_user(self, name: str, catalog: str, *grants: Grant) -> Credential:
        """A principal with these privileges in a catalog, through roles NAME_role and NAME_catalog_role."""
        credential = await self.create_principal(name)
        await self.create_role(f"{name}_role")
        await self.assign_role(name, f"{name}_role")
        await self.create_catalog_role(catalog, f"{name}_catalog_role")
        await self.assign_catalog_role(catalog, f"{name}_catalog_role", f"{name}_role")
        for grant in grants:
            await self.grant(catalog, f"{name}_catalog_role", grant)
        return credential

    async def send(self, method: str, path: str, body: object = None) -> Any:
        """Send one request; the decoded answer."""
        answer = await self.http.request(method, MANAGEMENT + path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


def read_credential(made: Mapping[str, Any]) -> Credential:
    """The credential in an answer that has one, remembered as a secret."""
    found = made["credentials"]
    client_id, secret = found["clientId"], found["clientSecret"]
    return Credential(client_id, KNOWN.add(secret, client_id=client_id))
