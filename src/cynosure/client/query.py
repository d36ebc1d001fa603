"""Governed SQL at a gateway: statements are sent, waited for, fetched page by page, ended.

A maintainer must not break: a statement is sent under an id of the client's own, so that sending it again
after a lost answer is the same statement; and whoever stops early ends it at the gateway.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from cynosure.client.api import ApiClient, segment

_BASE: Final = "/api/query/v1"
_ENDED: Final = frozenset({"FINISHED", "FAILED", "CANCELED"})
_ROUND_S: Final = 60.0
"""For one request, beyond what it waits for."""
_ARROW: Final = "application/vnd.apache.arrow.stream"


class Column(Struct, frozen=True):
    """A column of results."""

    name: str
    type: str


class Progress(Struct, frozen=True, rename="kebab"):
    """How far a statement is."""

    fragments: int = 0
    fragments_done: int = 0
    rows_scanned: int = 0
    bytes_scanned: int = 0
    bytes_total: int = 0


class StatementState(Struct, frozen=True, rename="kebab"):
    """A statement at one time."""

    id: str
    state: str
    elapsed_ms: int = 0
    engine: str = ""
    reason: str = ""
    columns: list[Column] | None = None
    rows: int = 0
    progress: Progress = Progress()
    tables: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    results: str = ""
    error: dict[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in _ENDED


class Page(Struct, frozen=True):
    """Some of the results, in order."""

    columns: list[Column]
    rows: list[list[Any]]
    """JSON values, as docs/reference/query-api.md says: decimals, dates and binary are text."""
    next: str | None = None


class ArrowPage(Struct, frozen=True):
    """Some of the results, as they came."""

    stream: bytes
    """A whole Arrow IPC stream, with its schema."""
    next: str | None = None


class QuerySession(Struct, frozen=True):
    """What names in statements are relative to."""

    catalog: str = ""
    namespace: tuple[str, ...] = ()
    parameters: Mapping[str, Any] | Sequence[Any] = field(default_factory=list)
    timeout: str | None = None


class QueryApi:
    """A gateway, asked in the name of one principal."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def submit(
        self, sql: str, session: QuerySession, *, statement_id: str = "", wait_s: float = 0.0
    ) -> StatementState:
        """Send a statement, and wait for so long at most until it is planned."""
        body: dict[str, Any] = {
            "sql": sql,
            "statement-id": statement_id or str(uuid.uuid4()),
            "wait": wait_s,
            "parameters": session.parameters,
        }
        if session.catalog:
            body["catalog"] = session.catalog
        if session.namespace:
            body["namespace"] = list(session.namespace)
        if session.timeout is not None:
            body["timeout"] = session.timeout
        reply = await self._api.request(
            "POST", f"{_BASE}/statements", body=body, timeout_s=_ROUND_S + wait_s, is_repeatable=True
        )
        return reply.decode(StatementState)

    async def load(self, statement_id: str, *, wait_s: float = 0.0) -> StatementState:
        """A statement as it is, or when something about it is new."""
        reply = await self._api.request(
            "GET", _path(statement_id), query={"wait": f"{wait_s:g}"}, timeout_s=_ROUND_S + wait_s
        )
        return reply.decode(StatementState)

    async def fetch(self, results: str, *, wait_s: float = 0.0) -> Page | StatementState:
        """A page by its address: `results` of a statement, or `next` of a page.

        The statement itself while the page is not ready. Errors are those of the statement.
        """
        reply = await self._api.request(
            "GET", results, query={"wait": f"{wait_s:g}"}, timeout_s=_ROUND_S + wait_s
        )
        return reply.decode(StatementState) if reply.status == 202 else reply.decode(Page)

    async def fetch_arrow(self, results: str, *, wait_s: float = 0.0) -> ArrowPage | StatementState:
        """As `fetch`, as Arrow."""
        reply = await self._api.request(
            "GET",
            results,
            query={"wait": f"{wait_s:g}"},
            headers={"Accept": _ARROW},
            timeout_s=_ROUND_S + wait_s,
        )
        if reply.status == 202:
            return reply.decode(StatementState)
        return ArrowPage(reply.body, _find_next(reply.headers.get("link", "")))

    async def cancel(self, statement_id: str, *, timeout_s: float = 5.0) -> StatementState:
        """End a statement."""
        reply = await self._api.request(
            "DELETE", _path(statement_id), timeout_s=timeout_s, is_repeatable=True
        )
        return reply.decode(StatementState)

    async def list_own(self) -> list[StatementState]:
        """Statements of this principal that are remembered, the newest first."""
        reply = await self._api.request("GET", f"{_BASE}/statements")
        return reply.decode(_Listed).statements


class _Listed(Struct):
    statements: list[StatementState]


def _path(statement_id: str) -> str:
    return f"{_BASE}/statements/{segment(statement_id)}"


def _find_next(link: str) -> str | None:
    address, _, relation = link.partition(">")
    return address.lstrip("<") if 'rel="next"' in relation else None
