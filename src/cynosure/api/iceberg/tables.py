"""Tables of the Iceberg REST protocol.

Must not break: a table is answered with bytes that were encoded before; no handler touches metadata.
"""

from functools import partial

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.access import AccessAnswers
from cynosure.api.iceberg.access_delegation import DESCRIBED, delegation_of
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, namespace_of, open_of, table_of
from cynosure.api.iceberg.etags import is_unchanged
from cynosure.api.messages import NO_STORE, Request, Response
from cynosure.api.router import Route
from cynosure.catalog.file_access.giving import Access, plain_access
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.names import Identifier, check_name
from cynosure.catalog.operations.create_table import CreateTable
from cynosure.catalog.operations.give_access_to_created import give_access_to_created
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_table import load_table, load_table_for_data, table_exists
from cynosure.federation import lists


class TableHandlers:
    """The handlers of tables, but for commits."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._access = AccessAnswers()

    async def list(self, request: Request) -> Response:
        """The names of a namespace's tables."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        catalog = await open_of(self._catalogs, caller, request)
        if catalog.is_federated:
            remotes = self._catalogs.federation.clients
            listed = await lists.list_tables(remotes, catalog, caller, namespace, request.query.paging())
        else:
            listed = await list_tables(catalog, caller, namespace, request.query.paging())
        return Response(200, listed)

    async def create(self, request: Request) -> Response:
        """Create a table, or only its first metadata when it is staged."""
        caller = caller_of(request)
        body: wire.CreateTableRequest = request.body
        wanted = CreateTable(
            namespace=namespace_of(request),
            name=check_name(body.name, field="name"),
            schema=body.schema,
            location=body.location,
            partition_spec=wire.given(body.partition_spec),
            write_order=wire.given(body.write_order),
            properties=body.properties or {},
            is_staged=bool(body.stage_create),
        )
        catalog = await open_of(self._catalogs, caller, request)
        operations = self._catalogs.operations_of(catalog)
        table, delegation = Identifier(wanted.namespace, wanted.name), delegation_of(request)
        created = await operations.create_table(catalog, caller, wanted, delegation=delegation)
        access = await give_access_to_created(catalog, caller, table, created, delegation)
        return self._loaded(request, created.answer, table, access)

    async def load(self, request: Request) -> Response:
        """A table, or 304 when the client has this version."""
        caller = caller_of(request)
        table = table_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        snapshots = request.query.snapshots
        if delegation := delegation_of(request):
            loaded = await load_table_for_data(
                catalog, caller, table, snapshots=snapshots, delegation=delegation
            )
            answer, access = loaded.answer, loaded.access
            if catalog.is_federated and loaded.is_writable and delegation.vended:
                access = await self._catalogs.federation.give_access(catalog, table, access)
        else:
            answer = await load_table(catalog, caller, table, snapshots=snapshots)
            access = plain_access(catalog)
        return self._loaded(request, answer, table, access, is_conditional=True)

    async def exists(self, request: Request) -> Response:
        """Whether a table is there."""
        caller = caller_of(request)
        table = table_of(request)
        await table_exists(await catalog_of(self._catalogs, caller, request), caller, table)
        return Response(204)

    async def drop(self, request: Request) -> Response:
        """Drop a table."""
        caller = caller_of(request)
        table = table_of(request)
        catalog = await open_of(self._catalogs, caller, request)
        operations, is_purge = self._catalogs.operations_of(catalog), request.query.purge_requested
        await operations.drop_table(catalog, caller, table, is_purge_requested=is_purge)
        return Response(204)

    async def rename(self, request: Request) -> Response:
        """Give a table another name, also in another namespace."""
        caller = caller_of(request)
        body: wire.RenameRequest = request.body
        source, destination = body.source.checked("source"), body.destination.checked("destination")
        catalog = await open_of(self._catalogs, caller, request)
        await self._catalogs.operations_of(catalog).rename_table(catalog, caller, source, destination)
        return Response(204)

    async def register(self, request: Request) -> Response:
        """Make a table of a metadata file that exists."""
        caller = caller_of(request)
        body: wire.RegisterTableRequest = request.body
        table = Identifier(namespace_of(request), check_name(body.name, field="name"))
        catalog = await open_of(self._catalogs, caller, request)
        delegation = delegation_of(request)
        registered = await self._catalogs.operations_of(catalog).register_table(
            catalog,
            caller,
            table,
            body.metadata_location,
            is_overwrite=bool(body.overwrite),
            delegation=delegation,
        )
        access = await give_access_to_created(catalog, caller, table, registered, delegation)
        return self._loaded(request, registered.answer, table, access)

    async def unregister(self, request: Request) -> Response:
        """Give a table up without touching its files."""
        caller = caller_of(request)
        table = table_of(request)
        catalog = await open_of(self._catalogs, caller, request)
        answer = await self._catalogs.operations_of(catalog).unregister_table(catalog, caller, table)
        return Response(200, answer.commit_body())

    def _loaded(
        self,
        request: Request,
        answer: TableAnswer,
        table: Identifier,
        access: Access,
        *,
        is_conditional: bool = False,
    ) -> Response:
        told = self._access.tell(access, request.params["prefix"], table)
        headers = [] if access.vended is None else [NO_STORE]
        if answer.etag is None:
            return Response(200, answer.load_body(told.json), headers=headers)
        etag = b'%b%b"' % (answer.etag[:-1], told.tag) if told.tag else answer.etag
        if is_conditional and is_unchanged(request, etag):
            return Response(304, headers=[(b"etag", etag)])
        return Response(200, answer.load_body(told.json), headers=[(b"etag", etag), *headers])


def table_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of tables, but for commits."""
    handlers = TableHandlers(catalogs)
    route = partial(Route, tags=("iceberg",))
    namespace = f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}"
    many = f"{namespace}/tables"
    one = f"{many}/{{table}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listTables",
            summary="List the tables of a namespace",
            query=wire.ListQuery,
            responses={200: wire.ListIdentifiersResponse},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createTable",
            summary="Create a table, or stage its creation",
            request=wire.CreateTableRequest,
            headers=DESCRIBED,
            responses={200: wire.LoadTableResult},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="loadTable",
            summary="Load a table",
            query=wire.LoadTableQuery,
            headers={**DESCRIBED, "If-None-Match": {"type": "string"}},
            responses={200: wire.LoadTableResult, 304: None},
        ),
        route(
            "HEAD",
            one,
            handlers.exists,
            operation_id="tableExists",
            summary="Whether a table exists",
            responses={204: None},
        ),
        route(
            "DELETE",
            one,
            handlers.drop,
            operation_id="dropTable",
            summary="Drop a table, with its files if that is requested",
            query=wire.DropTableQuery,
            responses={204: None},
            errors=(502, 504),
        ),
        route(
            "POST",
            f"{BASE}/v1/{{prefix}}/tables/rename",
            handlers.rename,
            operation_id="renameTable",
            summary="Rename a table",
            request=wire.RenameRequest,
            responses={204: None},
        ),
        route(
            "POST",
            f"{namespace}/register",
            handlers.register,
            operation_id="registerTable",
            summary="Register a table by its metadata file",
            request=wire.RegisterTableRequest,
            headers=DESCRIBED,
            responses={200: wire.LoadTableResult},
        ),
        route(
            "POST",
            f"{one}/unregister",
            handlers.unregister,
            operation_id="unregisterTable",
            summary="Remove a table from the catalog and leave its files alone",
            responses={200: wire.CommitTableResponse},
        ),
    ]
