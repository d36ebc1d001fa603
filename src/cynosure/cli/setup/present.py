"""What a server has of the things that a setup file speaks of."""

from typing import TYPE_CHECKING

from cynosure.cli.setup.document import CatalogPart, Document, Properties
from cynosure.cli.setup.plan import Present, PresentCatalog
from cynosure.cli.setup.policies import load_policies
from cynosure.client.catalog import Namespace
from cynosure.common.errors import NotFound

if TYPE_CHECKING:
    from cynosure.cli.transport import Server


async def load_present(server: "Server", document: Document) -> Present:
    """Ask the server. What the file does not name is not asked for."""
    management = server.management
    needs_roles = document.principal_roles or any(each.roles for each in document.principals.values())
    needs_roles = needs_roles or any(
        role.assign_to for catalog in document.catalogs for role in catalog.roles.values()
    )
    roles = await management.list_principal_roles() if needs_roles else []
    principals = await management.list_principals() if document.principals else []
    known = {each.name: each for each in principals}
    roles_of = {
        name: frozenset(each.name for each in await management.list_roles_of_principal(name))
        for name, part in document.principals.items()
        if name in known and part.roles
    }
    catalogs = {}
    for part in document.catalogs:
        try:
            catalogs[part.name] = await _load_catalog(server, part)
        except NotFound:
            continue
    return Present(known, {each.name: each for each in roles}, roles_of, catalogs)


async def _load_catalog(server: "Server", part: CatalogPart) -> PresentCatalog:
    management = server.management
    catalog = await management.load_catalog(part.name)
    roles = {}
    if part.roles:
        roles = {each.name: each for each in await management.list_catalog_roles(part.name)}
    named = {name: role for name, role in part.roles.items() if name in roles}
    return PresentCatalog(
        catalog,
        roles=roles,
        assignees={
            name: frozenset(
                each.name for each in await management.list_assignees_of_catalog_role(part.name, name)
            )
            for name, role in named.items()
            if role.assign_to
        },
        grants={name: frozenset(await management.list_grants(part.name, name)) for name in named},
        namespaces=await _load_namespaces(server, part),
        policies=await load_policies(server, part.name, part.policies),
    )


async def _load_namespaces(server: "Server", part: CatalogPart) -> dict[Namespace, Properties]:
    found: dict[Namespace, Properties] = {}
    api = server.catalog(part.name)
    for levels in part.namespace_parts():
        if len(levels) > 1 and levels[:-1] not in found:
            continue
        try:
            found[levels] = (await api.load_namespace(levels)).properties
        except NotFound:
            continue
    return found
