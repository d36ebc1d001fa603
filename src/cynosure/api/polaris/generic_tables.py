"""Generic tables, as Apache Polaris serves them.

Must not break: a client that asks for access to files gets it or an error; a value of the header that is not
known here is refused, never ignored.
"""

from functools import partial
from typing import Final

from msgspec import Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, namespace_of
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.generic.access import HEADER, StorageAccess
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.generic.list_generic_tables import list_generic_tables
from cynosure.catalog.generic.load_generic_table import LoadedGenericTable, load_generic_table
from cynosure.catalog.names import Identifier, check_name
from cynosure.common.errors import BadInput

_HEADER_NAME: Final = HEADER.lower().encode("ascii")
_VENDED: Final = "vended-credentials"
_HEADERS: Final = {HEADER: {"type": "string", "enum": [_VENDED]}}


class CreateGenericTableRequest(Struct, frozen=True, rename="kebab"):
    """Body of createGenericTable."""

    name: str
    format: str
    base_location: str | None = None
    doc: str | None = None
    properties: dict[str, str] | None = None


class GenericTable(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A generic table."""

    name: str
    format: str
    base_location: str | None = None
    doc: str | None = None
    properties: dict[str, str] | None = None


class LoadGenericTableResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of createGenericTable and loadGenericTable."""

    table: GenericTable
    storage_access_configs: tuple[StorageAccess, ...] = ()


class ListGenericTablesResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listGenericTables."""

    identifiers: list[wire.TableIdentifier]
    next_page_token: str | None = None


class GenericTableHandlers:
    """The handlers of generic tables."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def list(self, request: Request) -> Response:
        """The names of a namespace's generic tables."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        return Response(200, await list_generic_tables(catalog, caller, namespace, request.query.paging()))

    async def create(self, request: Request) -> Response:
        """Create a generic table."""
        caller = caller_of(request)
        is_delegated = _is_delegated(request)
        body: CreateGenericTableRequest = request.body
        wanted = CreateGenericTable(
            name=Identifier(namespace_of(request), check_name(body.name, field="name")),
            format=body.format,
            location=body.base_location or "",
            doc=body.doc,
            properties=body.properties or {},
        )
        catalog = await catalog_of(self._catalogs, caller, request)
        return _loaded(await create_generic_table(catalog, caller, wanted, is_delegated=is_delegated))

    async def load(self, request: Request) -> Response:
        """A generic table, with credentials when they are asked for."""
        caller = caller_of(request)
        is_delegated = _is_delegated(request)
        name = _table_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        return _loaded(await load_generic_table(catalog, caller, name, is_delegated=is_delegated))

    async def drop(self, request: Request) -> Response:
        """Drop a generic table; its files stay."""
        caller = caller_of(request)
        name = _table_of(request)
        await drop_generic_table(await catalog_of(self._catalogs, caller, request), caller, name)
        return Response(204)


def _is_delegated(request: Request) -> bool:
    asked = request.find_header(_HEADER_NAME)
    if asked is None:
        return False
    if asked.strip().lower() != _VENDED:
        raise BadInput(
            "This way of access to a generic table is not known",
            field=HEADER,
            fix=f"Send {_VENDED}, or leave the header out.",
            value=asked[:50],
        )
    return True


def _table_of(request: Request) -> Identifier:
    name = check_name(request.params["generic-table"], field="generic-table")
    return Identifier(namespace_of(request), name)


def _loaded(loaded: LoadedGenericTable) -> Response:
    entity = loaded.entity
    table = GenericTable(
        name=loaded.name.name,
        format=entity.format,
        base_location=entity.location or None,
        doc=entity.doc,
        properties=entity.properties,
    )
    headers = [NO_STORE] if loaded.access else []
    return Response.json(LoadGenericTableResponse(table, loaded.access), headers=headers)


def generic_table_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of generic tables."""
    handlers = GenericTableHandlers(catalogs)
    route = partial(Route, tags=("polaris",))
    many = f"{BASE}/polaris/v1/{{prefix}}/namespaces/{{namespace}}/generic-tables"
    one = f"{many}/{{generic-table}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listGenericTables",
            summary="List the generic tables of a namespace",
            query=wire.ListQuery,
            responses={200: ListGenericTablesResponse},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createGenericTable",
            summary="Create a generic table",
            request=CreateGenericTableRequest,
            headers=_HEADERS,
            responses={200: LoadGenericTableResponse},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="loadGenericTable",
            summary="Load a generic table",
            headers=_HEADERS,
            responses={200: LoadGenericTableResponse},
        ),
        route(
            "DELETE",
            one,
            handlers.drop,
            operation_id="dropGenericTable",
            summary="Drop a generic table",
            responses={204: None},
        ),
    ]
