"""What was done in a realm and what was refused, with filters, cursors and long polling."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

from msgspec import Meta, Struct

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management.context import BASE
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.audit.events import Decision
from cynosure.auth.audit.read import MAX_EVENTS, MAX_WAIT_S, EventFilter, EventPage, EventReader

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)


class EventsQuery(Struct, frozen=True):
    """Which events, where to begin, how much, how long to wait."""

    cursor: str | None = None
    """Of an earlier answer: what comes after it. Left out: from the oldest event on."""
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS)] = 100
    """Most events of one answer."""
    since: Annotated[datetime, Meta(tz=True)] | None = None
    """Only what happened at this time or later."""
    until: Annotated[datetime, Meta(tz=True)] | None = None
    """Only what happened before this time."""
    principal: str | None = None
    """Only what this principal did, or a service of this name for somebody."""
    operation: str | None = None
    """Only this operation, such as `create-table`."""
    decision: Decision | None = None
    """Only what was allowed, or only what was denied."""
    target: str | None = None
    """Only what is about this name, or about something below the namespace of this name."""
    catalog: str | None = None
    """Only what is about this catalog."""
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT_S)] = 0.0
    """Seconds to wait for an event when there is none."""

    def filter(self) -> EventFilter:
        """What passes."""
        return EventFilter(
            since_us=None if self.since is None else (self.since - _EPOCH) // _US,
            until_us=None if self.until is None else (self.until - _EPOCH) // _US,
            principal=self.principal,
            operation=self.operation,
            decision=self.decision,
            target=self.target,
            catalog=self.catalog,
        )


def event_routes(events: EventReader) -> list[Route]:
    """The route of events."""

    async def read(request: Request) -> Response:
        query: EventsQuery = request.query
        page = await events.read(
            caller_of(request), query.filter(), cursor=query.cursor, limit=query.limit, wait_s=query.wait
        )
        return Response.json(page)

    return [
        Route(
            "GET",
            f"{BASE}/cynosure/events",
            read,
            operation_id="readEvents",
            summary="Read what was done and what was refused, from a cursor on; waits for more when asked to",
            tags=("cynosure",),
            query=EventsQuery,
            responses={200: EventPage},
        )
    ]
