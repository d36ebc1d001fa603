"""Namespaces of the Iceberg REST protocol."""

from functools import partial

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, namespace_of, open_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.names import parse_namespace
from cynosure.catalog.operations.list_namespaces import list_namespaces
from cynosure.catalog.operations.load_namespace import load_namespace, namespace_exists
from cynosure.catalog.operations.update_namespace_properties import PropertiesUpdate
from cynosure.federation import lists


class NamespaceHandlers:
    """The handlers of namespaces."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def list(self, request: Request) -> Response:
        """Namespaces below `parent`, or those at the top."""
        caller = caller_of(request)
        query: wire.NamespacesQuery = request.query
        parent = parse_namespace(query.parent, field="parent") if query.parent else ()
        catalog = await open_of(self._catalogs, caller, request)
        if catalog.is_federated:
            remotes = self._catalogs.federation.clients
            listed = await lists.list_namespaces(remotes, catalog, caller, parent, query.paging())
        else:
            listed = await list_namespaces(catalog, caller, parent, query.paging())
        return Response(200, listed)

    async def create(self, request: Request) -> Response:
        """Create a namespace; its parent must exist."""
        caller = caller_of(request)
        body: wire.CreateNamespaceRequest = request.body
        namespace = body.checked_namespace()
        catalog = await open_of(self._catalogs, caller, request)
        operations = self._catalogs.operations_of(catalog)
        entity = await operations.create_namespace(catalog, caller, namespace, body.properties or {})
        return Response.json(wire.NamespaceResponse(namespace, entity.properties))

    async def load(self, request: Request) -> Response:
        """The properties of a namespace."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        catalog = await catalog_of(self._catalogs, caller, request)
        entity = await load_namespace(catalog, caller, namespace)
        return Response.json(wire.NamespaceResponse(namespace, entity.properties))

    async def exists(self, request: Request) -> Response:
        """Whether a namespace is there."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        await namespace_exists(await catalog_of(self._catalogs, caller, request), caller, namespace)
        return Response(204)

    async def drop(self, request: Request) -> Response:
        """Drop an empty namespace."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        catalog = await open_of(self._catalogs, caller, request)
        await self._catalogs.operations_of(catalog).drop_namespace(catalog, caller, namespace)
        return Response(204)

    async def update(self, request: Request) -> Response:
        """Set and remove properties."""
        caller = caller_of(request)
        namespace = namespace_of(request)
        body: wire.UpdateNamespacePropertiesRequest = request.body
        wanted = PropertiesUpdate(tuple(body.removals or ()), body.updates or {})
        catalog = await open_of(self._catalogs, caller, request)
        operations = self._catalogs.operations_of(catalog)
        done = await operations.update_namespace_properties(catalog, caller, namespace, wanted)
        return Response.json(wire.UpdateNamespacePropertiesResponse(done.updated, done.removed, done.missing))


def namespace_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of namespaces."""
    handlers = NamespaceHandlers(catalogs)
    route = partial(Route, tags=("iceberg",))
    many = f"{BASE}/v1/{{prefix}}/namespaces"
    one = f"{many}/{{namespace}}"
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listNamespaces",
            summary="List namespaces below a parent, or at the top",
            query=wire.NamespacesQuery,
            responses={200: wire.ListNamespacesResponse},
        ),
        route(
            "POST",
            many,
            handlers.create,
            operation_id="createNamespace",
            summary="Create a namespace",
            request=wire.CreateNamespaceRequest,
            responses={200: wire.NamespaceResponse},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="loadNamespaceMetadata",
            summary="Load the properties of a namespace",
            responses={200: wire.NamespaceResponse},
        ),
        route(
            "HEAD",
            one,
            handlers.exists,
            operation_id="namespaceExists",
            summary="Whether a namespace exists",
            responses={204: None},
        ),
        route(
            "DELETE",
            one,
            handlers.drop,
            operation_id="dropNamespace",
            summary="Drop an empty namespace",
            responses={204: None},
        ),
        route(
            "POST",
            f"{one}/properties",
            handlers.update,
            operation_id="updateProperties",
            summary="Set and remove properties of a namespace",
            request=wire.UpdateNamespacePropertiesRequest,
            responses={200: wire.UpdateNamespacePropertiesResponse},
            errors=(422,),
        ),
    ]
