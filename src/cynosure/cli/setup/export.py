"""A setup file from what a server has.

A maintainer must not break: all or nothing. What cannot be read ends the export, because a file that lacks
something would be taken for the whole.
"""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from cynosure.cli.setup.connections import export_connection
from cynosure.cli.setup.plan import BASE_LOCATION
from cynosure.cli.setup.policies import export_policies
from cynosure.client.management_types import Catalog, Grant

if TYPE_CHECKING:
    from cynosure.cli.transport import Server


async def export_document(server: "Server") -> dict[str, Any]:
    """Everything that `setup apply` understands. Secrets are nobody's to read, so there are none."""
    management = server.management
    principals: dict[str, Any] = {}
    for principal in await management.list_principals():
        roles = [each.name for each in await management.list_roles_of_principal(principal.name)]
        principals[principal.name] = _filled(
            type="service", properties=principal.properties, roles=sorted(roles)
        )
    principal_roles = [
        _filled(name=role.name, properties=role.properties, federated=role.federated)
        if role.properties or role.federated
        else role.name
        for role in await management.list_principal_roles()
    ]
    catalogs = [await _export_catalog(server, each) for each in await management.list_catalogs()]
    return {"principals": principals, "principal_roles": principal_roles, "catalogs": catalogs}


async def _export_catalog(server: "Server", catalog: Catalog) -> dict[str, Any]:
    api = server.catalog(catalog.name)
    namespaces = []
    spaces = await api.walk_namespaces()
    for levels in spaces:
        properties = dict((await api.load_namespace(levels)).properties)
        namespaces.append(_filled(name=list(levels), properties=properties))
    storage = {
        _snake(name): value
        for name, value in catalog.storage_config_info.items()
        if name not in ("storageType", "allowedLocations") and value not in (None, [], "")
    }
    return _filled(
        name=catalog.name,
        type=catalog.type.lower(),
        storage_type=catalog.storage_type.lower(),
        default_base_location=catalog.base_location,
        allowed_locations=[each for each in catalog.allowed_locations if each != catalog.base_location],
        properties={name: value for name, value in catalog.properties.items() if name != BASE_LOCATION},
        **storage,
        connection=export_connection(catalog.connection_config_info),
        roles=await _export_roles(server, catalog.name),
        # Those of a remote are the remote's: whoever applies the file must not make them there.
        namespaces=[] if catalog.connection_config_info else namespaces,
        policies=await export_policies(server, catalog.name, spaces),
    )


async def _export_roles(server: "Server", catalog: str) -> dict[str, Any]:
    management = server.management
    found = {}
    for role in await management.list_catalog_roles(catalog):
        assignees = await management.list_assignees_of_catalog_role(catalog, role.name)
        found[role.name] = _filled(
            properties=role.properties,
            assign_to=sorted(each.name for each in assignees),
            privileges=_export_grants(await management.list_grants(catalog, role.name)),
        )
    return found


def _export_grants(grants: list[Grant]) -> dict[str, Any]:
    places: defaultdict[tuple[str, tuple[str, ...], str], list[str]] = defaultdict(list)
    for grant in grants:
        places[grant.type, grant.namespace, grant.name].append(grant.privilege)
    found: dict[str, Any] = {}
    for (kind, namespace, name), privileges in sorted(places.items()):
        if kind == "catalog":
            found[kind] = sorted(privileges)
            continue
        entry = _filled(namespace=list(namespace), name=name, privileges=sorted(privileges))
        found.setdefault(kind, []).append(entry)
    return found


def _filled(**fields: Any) -> dict[str, Any]:
    """Without what is empty or not so."""
    return {name: value for name, value in fields.items() if value}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
