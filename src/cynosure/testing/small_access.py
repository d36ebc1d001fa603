"""People with rights in the catalogs of a test, made through the real operations."""

from cynosure.api.asgi import Scope
from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.caller import Caller
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.load_principal import load_principal
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_realm import caller_for, identities_of

P = Privilege


def on_catalog(*privileges: Privilege) -> list[Grant]:
    """Grants on a catalog."""
    return [Grant("catalog", each) for each in privileges]


def on_namespace(namespace: Namespace, *privileges: Privilege) -> list[Grant]:
    """Grants on a namespace."""
    return [Grant("namespace", each, namespace) for each in privileges]


def on_table(table: Identifier, *privileges: Privilege) -> list[Grant]:
    """Grants on a table."""
    return [Grant("table", each, table.namespace, table.name) for each in privileges]


def on_view(view: Identifier, *privileges: Privilege) -> list[Grant]:
    """Grants on a view."""
    return [Grant("view", each, view.namespace, view.name) for each in privileges]


class People:
    """Principals of a directory's store. Each has a principal role and, in a catalog, a role of its name."""

    def __init__(self, directory: Directory) -> None:
        shared = directory.shared
        self.identities: Identities = identities_of(shared.persistence, shared.access)

    async def root(self) -> Caller:
        """The realm's first principal, with `service_admin`."""
        await bootstrap_realm(self.identities, DEFAULT_REALM)
        return caller_for(await load_principal(self.identities, ROOT, "root"))

    async def add(self, name: str, catalog: OpenCatalog | None = None, *grants: Grant) -> Caller:
        """Somebody who may do nothing, but for these grants in a catalog."""
        made = await create_principal(self.identities, ROOT, NewPrincipal(name))
        await create_principal_role(self.identities, ROOT, NewPrincipalRole(name))
        await assign_principal_role(self.identities, ROOT, name, name)
        if catalog is not None:
            await self.join(name, catalog, *grants)
        return caller_for(made.principal)

    async def join(self, name: str, catalog: OpenCatalog, *grants: Grant) -> None:
        """Give a person a role in a catalog, with these grants."""
        await create_catalog_role(catalog, ROOT, name, {})
        await assign_catalog_role(catalog, ROOT, name, name)
        await self.grant(name, catalog, *grants)

    async def grant(self, name: str, catalog: OpenCatalog, *grants: Grant) -> None:
        """Grant a person more."""
        for each in grants:
            await grant_privilege(catalog, ROOT, name, each)

    async def revoke(self, name: str, catalog: OpenCatalog, *grants: Grant) -> None:
        """Take something away again."""
        for each in grants:
            await revoke_privilege(catalog, ROOT, name, each)


class CallerGate:
    """Lets everybody in as one caller, and keeps what it was told to be refused."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.refusals: list[Exception] = []

    async def admit(self, scope: Scope) -> Caller:
        """See `Gate.admit`."""
        return self.caller

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        """See `Gate.refused`."""
        self.refusals.append(error)
