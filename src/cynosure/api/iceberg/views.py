"""Views of the Iceberg REST protocol."""

from functools import partial

from msgspec import Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, namespace_of, open_of, view_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.names import Identifier, check_name
from cynosure.catalog.operations.create_view import CreateView
from cynosure.catalog.operations.list_views import list_views
from cynosure.catalog.operations.load_view import load_view, view_exists
from cynosure.catalog.operations.replace_view import ViewChange
from cynosure.federation import lists
from cynosure.iceberg.views import ViewRequirement, ViewUpdate


class CommitViewRequest(Struct, frozen=True):
    """Body of replaceView."""

    updates: list[ViewUpdate]
    requirements: list[ViewRequirement] | None = None
    identifier: wire.TableIdentifier | None = None
    """The path decides; clients may repeat it here."""


class ViewHandlers:
    """The handlers of views."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def list(self, request: Request) -> Response:
        """The names of a namespace's views."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        catalog = await open_of(self._catalogs, caller, request)
        if catalog.is_federated:
            remotes = self._catalogs.federation.clients
            listed = await lists.list_views(remotes, catalog, caller, namespace, request.query.paging())
        else:
            listed = await list_views(catalog, caller, namespace, request.query.paging())
        return Response(200, listed)

    async def create(self, request: Request) -> Response:
        """Create a view."""
        caller = caller_of(request)
        body: wire.CreateViewRequest = request.body
        wanted = CreateView(
            name=Identifier(namespace_of(request), check_name(body.name, field="name")),
            schema=body.schema,
            version=body.view_version,
            location=body.location,
            properties=body.properties or {},
        )
        catalog = await open_of(self._catalogs, caller, request)
        state = await self._catalogs.operations_of(catalog).create_view(catalog, caller, wanted)
        return Response(200, state.load_body())

    async def load(self, request: Request) -> Response:
        """A view."""
        caller = caller_of(request)
        name = view_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        return Response(200, (await load_view(catalog, caller, name)).load_body())

    async def exists(self, request: Request) -> Response:
        """Whether a view is there."""
        caller = caller_of(request)
        name = view_of(request)
        await view_exists(await catalog_of(self._catalogs, caller, request), caller, name)
        return Response(204)

    async def replace(self, request: Request) -> Response:
        """Commit updates to a view."""
        caller = caller_of(request)
        body: CommitViewRequest = request.body
        change = ViewChange(view_of(request), body.requirements or [], body.updates)
        catalog = await open_of(self._catalogs, caller, request)
        state = await self._catalogs.operations_of(catalog).replace_view(catalog, caller, change)
        return Response(200, state.load_body())

    async def drop(self, request: Request) -> Response:
        """Drop a view."""
        caller = caller_of(request)
        name = view_of(request)
        catalog = await open_of(self._catalogs, caller, request)
        await self._catalogs.operations_of(catalog).drop_view(catalog, caller, name)
        return Response(204)

    async def rename(self, request: Request) -> Response:
        """Give a view another name, also in another namespace."""
        caller = caller_of(request)
        body: wire.RenameRequest = request.body
        source, destination = body.source.checked("source"), body.destination.checked("destination")
        catalog = await open_of(self._catalogs, caller, request)
        await self._catalogs.operations_of(catalog).rename_view(catalog, caller, source, destination)
        return Response(204)

    async def register(self, request: Request) -> Response:
        """Make a view of a metadata file that exists."""
        caller = caller_of(request)
        body: wire.RegisterViewRequest = request.body
        name = Identifier(namespace_of(request), check_name(body.name, field="name"))
        catalog = await open_of(self._catalogs, caller, request)
        operations = self._catalogs.operations_of(catalog)
        state = await operations.register_view(catalog, caller, name, body.metadata_location)
        return Response(200, state.load_body())


def view_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of views."""
    handlers = ViewHandlers(catalogs)
    route = partial(Route, tags=("iceberg",))
    namespace = f"{BASE}/v1/{{prefix}}/namespaces/{{namespace}}"
    many = f"{namespace}/views"
    one = f"{many}/{{view}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listViews",
            summary="List the views of a namespace",
            query=wire.ListQuery,
            responses={200: wire.ListIdentifiersResponse},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createView",
            summary="Create a view",
            request=wire.CreateViewRequest,
            responses={200: wire.LoadViewResult},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="loadView",
            summary="Load a view",
            responses={200: wire.LoadViewResult},
        ),
        route(
            "HEAD",
            one,
            handlers.exists,
            operation_id="viewExists",
            summary="Whether a view exists",
            responses={204: None},
        ),
        route(
            "POST",
            one,
            handlers.replace,
            operation_id="replaceView",
            is_commit=True,
            summary="Commit updates to a view",
            request=CommitViewRequest,
            responses={200: wire.LoadViewResult},
        ),
        route(
            "DELETE",
            one,
            handlers.drop,
            operation_id="dropView",
            summary="Drop a view",
            responses={204: None},
        ),
        route(
            "POST",
            f"{BASE}/v1/{{prefix}}/views/rename",
            handlers.rename,
            operation_id="renameView",
            summary="Rename a view",
            request=wire.RenameRequest,
            responses={204: None},
        ),
        route(
            "POST",
            f"{namespace}/register-view",
            handlers.register,
            operation_id="registerView",
            summary="Register a view by its metadata file",
            request=wire.RegisterViewRequest,
            responses={200: wire.LoadViewResult},
        ),
    ]
