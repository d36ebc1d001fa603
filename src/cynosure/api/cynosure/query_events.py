"""Statements that the SQL gateway ran, for the audit of the realm."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from cynosure.api.iceberg.config import BASE
from cynosure.api.iceberg.context import caller_of
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.audit.queries import QueryLog, RanQuery

_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Word = Annotated[str, Meta(min_length=1, max_length=100)]
_Text = Annotated[str, Meta(max_length=1_000)]


class RecordQueryRequest(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A statement that has ended."""

    statement_id: _Word
    """Told twice, it is kept once."""
    outcome: _Word
    """FINISHED, FAILED, CANCELED."""
    sql: str
    """With `?` in place of its constants; what is beyond 16 KiB is cut off."""
    tables: list[str]
    """With their catalogs before them. Those beyond 100 are counted, not named; policies as well."""
    policies: list[str]
    """That restricted the principal."""
    rows: _Count
    """Of the result."""
    bytes: _Count
    """Of the files that were read."""
    elapsed_ms: _Count
    engine: _Word
    reason: _Text = ""
    """Why that engine."""
    error: _Text = ""
    """The kind of error only."""


def query_event_routes(queries: QueryLog) -> list[Route]:
    """The route that takes what was run."""

    async def record(request: Request) -> Response:
        body: RecordQueryRequest = request.body
        said = msgspec.structs.asdict(body)
        said |= {"tables": tuple(body.tables), "policies": tuple(body.policies)}
        await queries.record(caller_of(request), RanQuery(**said))
        return Response(204)

    return [
        Route(
            "POST",
            f"{BASE}/cynosure/v1/query-events",
            record,
            operation_id="recordQuery",
            summary="Tell what a trusted service ran for the principal that it acts for, for the audit",
            tags=("cynosure",),
            request=RecordQueryRequest,
            responses={204: None},
            # It needs no key: a statement has an id, and is kept once.
            changes_nothing=True,
        )
    ]
