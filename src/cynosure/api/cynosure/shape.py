"""Changes of columns, partitioning and sort order by names: the table chooses all ids, so none conflict."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg import wire
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.caller import Caller
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.add_columns import add_columns
from cynosure.catalog.operations.set_partitioning import set_partitioning
from cynosure.catalog.operations.set_sort_order import set_sort_order
from cynosure.catalog.shaping import ShapeOf
from cynosure.iceberg.shaping.columns import NewColumn
from cynosure.iceberg.shaping.partitioning import NewPartitionField
from cynosure.iceberg.shaping.sort_order import NewSortField

_TABLE = f"{BASE}/cynosure/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}"


class AddColumnsRequest(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Body of addColumns."""

    columns: Annotated[list[NewColumn], Meta(min_length=1)]
    table_uuid: str | None = None
    """If given, it must be this very table."""


class SetPartitioningRequest(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Body of setPartitioning."""

    fields: list[NewPartitionField]
    """None: the table is not partitioned any more."""
    table_uuid: str | None = None
    """If given, it must be this very table."""


class SetSortOrderRequest(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Body of setSortOrder."""

    fields: list[NewSortField]
    """None: the table is not sorted any more."""
    table_uuid: str | None = None
    """If given, it must be this very table."""


class ShapeHandlers:
    """The handlers of changes of shape."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    async def add_columns(self, request: Request) -> Response:
        """Add columns."""
        body: AddColumnsRequest = request.body
        return _answer(await add_columns(*await self._open(request), body.columns))

    async def set_partitioning(self, request: Request) -> Response:
        """Replace the partitioning."""
        body: SetPartitioningRequest = request.body
        return _answer(await set_partitioning(*await self._open(request), body.fields))

    async def set_sort_order(self, request: Request) -> Response:
        """Replace the sort order."""
        body: SetSortOrderRequest = request.body
        return _answer(await set_sort_order(*await self._open(request), body.fields))

    async def _open(self, request: Request) -> tuple[OpenCatalog, Caller, ShapeOf]:
        caller = caller_of(request)
        of = ShapeOf(table_of(request), request.body.table_uuid)
        return await catalog_of(self._catalogs, caller, request), caller, of


def _answer(answer: TableAnswer) -> Response:
    headers = [] if answer.etag is None else [(b"etag", answer.etag)]
    return Response(200, answer.commit_body(), headers=headers)


def shape_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of changes of shape."""
    handlers = ShapeHandlers(catalogs)
    route = partial(Route, tags=("cynosure",), responses={200: wire.CommitTableResponse})
    return [
        route(
            "POST",
            f"{_TABLE}/add-columns",
            handlers.add_columns,
            operation_id="addColumns",
            summary="Add columns to a table; the table gives them their ids",
            request=AddColumnsRequest,
        ),
        route(
            "POST",
            f"{_TABLE}/set-partitioning",
            handlers.set_partitioning,
            operation_id="setPartitioning",
            summary="Choose how new files of a table are grouped; the table gives spec and fields their ids",
            request=SetPartitioningRequest,
        ),
        route(
            "POST",
            f"{_TABLE}/set-sort-order",
            handlers.set_sort_order,
            operation_id="setSortOrder",
            summary="Choose how writers sort rows of a table; the table gives the order its id",
            request=SetSortOrderRequest,
        ),
    ]
