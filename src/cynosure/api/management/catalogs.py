"""Catalogs as things: created, looked at, changed, dropped.

Must not break: `default-base-location` is a property on the wire and a field of its own in the store, so it
is taken out of the properties on the way in and put back on the way out.
"""

from functools import partial

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management import wire, wire_catalogs
from cynosure.api.management.connections import describe_connection, read_connection
from cynosure.api.management.context import BASE, name_of, to_ms
from cynosure.api.management.storage import change_storage, choose_storage, describe_storage
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.federated_properties import NAMES
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.properties import OURS, SETTABLE
from cynosure.common.errors import BadInput


def describe_catalog(entity: CatalogEntity) -> wire_catalogs.Catalog:
    """A catalog as it is answered, without its keys and the secrets of its connection."""
    connection = entity.connection
    return wire_catalogs.Catalog(
        type=entity.kind,
        name=entity.name,
        properties={wire_catalogs.BASE_LOCATION: entity.base_location, **entity.properties},
        storage_config_info=describe_storage(entity.storage),
        connection_config_info=None if connection is None else describe_connection(connection),
        create_timestamp=to_ms(entity.created_us),
        last_update_timestamp=to_ms(entity.updated_us),
        entity_version=entity.version,
    )


def read_new_catalog(body: wire_catalogs.CreateCatalogRequest) -> NewCatalog:
    """A catalog to be created, as a client wrote it."""
    given = body.catalog
    base, properties = _split(given.properties)
    if not base:
        raise BadInput(
            "A catalog needs a base location",
            field=f"catalog.properties.{wire_catalogs.BASE_LOCATION}",
            fix="Say where its tables go.",
        )
    storage = choose_storage(base, given.storage_config_info)
    info = given.connection_config_info
    remote = None if info is None else read_connection(info)
    return NewCatalog(
        name=given.name,
        kind=given.type,
        base_location=storage.base,
        storage=storage.config,
        storage_keys=storage.keys,
        properties=properties,
        connection=None if remote is None else remote.connection,
        connection_secrets=None if remote is None else remote.secrets,
        admins=None if body.admin_principal_roles is None else tuple(body.admin_principal_roles),
    )


def read_update(body: wire_catalogs.UpdateCatalogRequest, entity: CatalogEntity) -> CatalogUpdate:
    """A change to a catalog, as a client wrote it."""
    old = entity.properties
    base, new = ("", old) if body.properties is None else _split(body.properties)
    storage = change_storage(entity, base, body.storage_config_info)
    info = body.connection_config_info
    remote = None if info is None else read_connection(info)
    return CatalogUpdate(
        # What is only sent back is not set again: clients return what they read, reserved names included.
        set_properties={name: value for name, value in new.items() if old.get(name) != value},
        remove_properties=tuple(name for name in old.keys() - new.keys() if not _is_kept(name)),
        base_location=storage.base,
        storage=storage.config,
        storage_keys=storage.keys,
        connection=None if remote is None else remote.connection,
        connection_secrets=None if remote is None else remote.secrets,
        version=body.current_entity_version,
    )


def _split(properties: dict[str, str]) -> tuple[str, dict[str, str]]:
    rest = {name: value for name, value in properties.items() if name != wire_catalogs.BASE_LOCATION}
    return properties.get(wire_catalogs.BASE_LOCATION, ""), rest


def _is_kept(name: str) -> bool:
    """Whether a property stays although it is not named: it is not for users to remove."""
    return name.startswith(OURS) and name not in SETTABLE and name not in NAMES


class CatalogHandlers:
    """The handlers of catalogs."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def list(self, request: Request) -> Response:
        """All catalogs, by name."""
        query: wire.ListQuery = request.query
        page = await list_catalogs(self._directory, caller_of(request), query.paging())
        found = [describe_catalog(each) for each in page.catalogs]
        return Response.json(wire_catalogs.Catalogs(found, page.next_token))

    async def create(self, request: Request) -> Response:
        """Create a catalog."""
        wanted = read_new_catalog(request.body)
        entity = await create_catalog(self._directory, caller_of(request), wanted)
        return Response.json(describe_catalog(entity), status=201)

    async def load(self, request: Request) -> Response:
        """One catalog."""
        entity = await load_catalog(self._directory, caller_of(request), name_of(request, "catalogName"))
        return Response.json(describe_catalog(entity))

    async def update(self, request: Request) -> Response:
        """Change its properties, or how its storage or its remote is reached."""
        entity = await update_catalog(
            self._directory,
            caller_of(request),
            name_of(request, "catalogName"),
            partial(read_update, request.body),
        )
        return Response.json(describe_catalog(entity))

    async def drop(self, request: Request) -> Response:
        """Drop it if it is empty."""
        await drop_catalog(self._directory, caller_of(request), name_of(request, "catalogName"))
        return Response(204)


def catalog_routes(directory: Directory) -> list[Route]:
    """The routes of catalogs."""
    handlers = CatalogHandlers(directory)
    route = partial(Route, tags=("catalogs",))
    many = f"{BASE}/catalogs"
    one = f"{many}/{{catalogName}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listCatalogs",
            summary="List catalogs",
            query=wire.ListQuery,
            responses={200: wire_catalogs.Catalogs},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createCatalog",
            summary="Create a catalog",
            request=wire_catalogs.CreateCatalogRequest,
            responses={201: wire_catalogs.Catalog},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="getCatalog",
            summary="Load a catalog",
            responses={200: wire_catalogs.Catalog},
        ),
        route(
            "PUT",
            one,
            handlers.update,
            operation_id="updateCatalog",
            summary="Change the properties, the storage or the connection of a catalog",
            request=wire_catalogs.UpdateCatalogRequest,
            responses={200: wire_catalogs.Catalog},
        ),
        route(
            "DELETE",
            one,
            handlers.drop,
            operation_id="deleteCatalog",
            summary="Drop an empty catalog",
            responses={204: None},
        ),
    ]
