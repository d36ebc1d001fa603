"""The change feed: what was committed to a catalog, with long polling."""

from typing import Annotated

from msgspec import Meta, Struct, field

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of, catalog_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.feed.read import MAX_CHANGES, MAX_WAIT_S, FeedPage, read_changes


class ChangesQuery(Struct, frozen=True):
    """Where to begin, how much, how long to wait."""

    start: str = field(name="from", default="now")
    """A cursor of an earlier answer, `now`, or `oldest`."""
    limit: Annotated[int, Meta(ge=1, le=MAX_CHANGES)] = 100
    """Most changes of one answer."""
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] = 0.0
    """Seconds to wait for a change when there is none."""


def change_routes(catalogs: Catalogs) -> list[Route]:
    """The route of the feed."""

    async def read(request: Request) -> Response:
        caller = caller_of(request)
        query: ChangesQuery = request.query
        catalog = await catalog_of(catalogs, caller, request)
        page = await read_changes(catalog, caller, start=query.start, limit=query.limit, wait_s=query.wait)
        return Response.json(page)

    return [
        Route(
            "GET",
            f"{BASE}/cynosure/v1/{{prefix}}/changes",
            read,
            operation_id="readChanges",
            summary="Read the changes of a catalog from a cursor on; waits for the next one when asked to",
            tags=("cynosure",),
            query=ChangesQuery,
            responses={200: FeedPage},
        )
    ]
