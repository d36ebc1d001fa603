"""Statistics of a table's files."""

from typing import Annotated

from msgspec import Meta, Struct

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of, table_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.operations.table_statistics import (
    MAX_PARTITIONS,
    StatisticsOf,
    TableStatistics,
    table_statistics,
)
from cynosure.iceberg.document import Int64


class StatisticsQuery(Struct, frozen=True, rename="kebab"):
    """Of which state, and how much detail."""

    snapshot_id: Int64 | None = None
    """A snapshot that the table keeps; without it and `branch`, the current one."""
    branch: str | None = None
    """A branch or tag."""
    partitions: Annotated[int, Meta(ge=0, le=MAX_PARTITIONS)] = 10
    """How many of the largest partitions are listed."""


def statistics_routes(catalogs: Catalogs) -> list[Route]:
    """The route of statistics."""

    async def read(request: Request) -> Response:
        caller = caller_of(request)
        table = table_of(request)
        query: StatisticsQuery = request.query
        catalog = await catalog_of(catalogs, caller, request)
        wanted = StatisticsOf(query.snapshot_id, query.branch, query.partitions)
        return Response.json(await table_statistics(catalog, caller, table, wanted))

    return [
        Route(
            "GET",
            f"{BASE}/cynosure/v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}/statistics",
            read,
            operation_id="tableStatistics",
            summary="Count the files of a table at a snapshot: sizes, small files, deletes, partitions",
            tags=("cynosure",),
            query=StatisticsQuery,
            responses={200: TableStatistics},
        )
    ]
