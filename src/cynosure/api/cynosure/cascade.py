"""Namespaces and catalogs that are dropped with all they hold, and what that would be.

Must not break: only a request that says so in its body drops more than what is empty.
"""

from functools import partial

from msgspec import Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, namespace_of, open_of
from cynosure.api.management.context import BASE as MANAGEMENT
from cynosure.api.management.context import name_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.cascading.drop_catalog import drop_catalog_cascade
from cynosure.catalog.cascading.drop_namespace import drop_namespace_cascade
from cynosure.catalog.cascading.explain import plan_catalog_cascade, plan_namespace_cascade
from cynosure.catalog.cascading.plan import CascadePlan
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.common.errors import BadInput

_NAMESPACE = f"{BASE}/cynosure/v1/{{prefix}}/namespaces/{{namespace}}/drop"
_CATALOG = f"{MANAGEMENT}/catalogs/{{catalogName}}/drop"


class DropRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """How to drop a namespace or a catalog."""

    cascade: bool = False
    """With all it holds; else only if it is empty."""
    purge: bool = False
    """With the files of its tables."""

    def __post_init__(self) -> None:
        if self.purge and not self.cascade:
            raise BadInput(
                "What is empty has no files to purge", field="purge", fix="Set cascade, or leave purge out."
            )


class CascadeQuery(Struct, frozen=True):
    """Of what it would be asked for."""

    purge: bool = False
    """With the files of its tables."""


class CascadeHandlers:
    """The handlers of cascades."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def plan_namespace(self, request: Request) -> Response:
        """What would be dropped with a namespace."""
        caller, namespace = caller_of(request), namespace_of(request)
        query: CascadeQuery = request.query
        catalog = await catalog_of(self._catalogs, caller, request)
        return Response.json(await plan_namespace_cascade(catalog, caller, namespace, is_purging=query.purge))

    async def drop_namespace(self, request: Request) -> Response:
        """Drop a namespace."""
        caller, namespace = caller_of(request), namespace_of(request)
        body: DropRequest = request.body
        catalog = await open_of(self._catalogs, caller, request)
        if body.cascade:
            await drop_namespace_cascade(catalog, caller, namespace, is_purging=body.purge)
        else:
            await self._catalogs.operations_of(catalog).drop_namespace(catalog, caller, namespace)
        return Response(204)

    async def plan_catalog(self, request: Request) -> Response:
        """What would be dropped with a catalog."""
        query: CascadeQuery = request.query
        name = name_of(request, "catalogName")
        return Response.json(
            await plan_catalog_cascade(
                self._catalogs.directory, caller_of(request), name, is_purging=query.purge
            )
        )

    async def drop_catalog(self, request: Request) -> Response:
        """Drop a catalog."""
        body: DropRequest = request.body
        caller, name = caller_of(request), name_of(request, "catalogName")
        if body.cascade:
            await drop_catalog_cascade(self._catalogs.directory, caller, name, is_purging=body.purge)
        else:
            await drop_catalog(self._catalogs.directory, caller, name)
        return Response(204)


def cascade_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of cascades."""
    handlers = CascadeHandlers(catalogs)
    route = partial(Route, tags=("cynosure",))
    plan = partial(route, "GET", query=CascadeQuery, responses={200: CascadePlan})
    drop = partial(route, "POST", request=DropRequest, responses={204: None}, errors=(504,))
    return [
        plan(
            _NAMESPACE,
            handlers.plan_namespace,
            operation_id="planNamespaceCascade",
            summary="What dropping a namespace with all it holds would drop, and what is in the way",
        ),
        drop(
            _NAMESPACE,
            handlers.drop_namespace,
            operation_id="dropNamespaceCascade",
            summary="Drop a namespace, with all it holds if the body says so; a repeated request goes on",
        ),
        plan(
            _CATALOG,
            handlers.plan_catalog,
            operation_id="planCatalogCascade",
            summary="What dropping a catalog with all it holds would drop, and what is in the way",
        ),
        drop(
            _CATALOG,
            handlers.drop_catalog,
            operation_id="dropCatalogCascade",
            summary="Drop a catalog, with all it holds if the body says so; a repeated request goes on",
        ),
    ]
