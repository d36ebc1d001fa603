"""A statement as its user and the API see it.

States: QUEUED ─► PLANNING ─► RUNNING ─► FINISHED | FAILED | CANCELED. FINISHED: the last page can be fetched.

A maintainer must not break: a statement belongs to the principal and realm that sent it; to all others it
does not exist.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from msgspec import Struct

from cynosure.common.errors import CynosureError
from cynosure.query.catalog_access.port import CatalogSession

if TYPE_CHECKING:
    import pyarrow as pa


class State(StrEnum):
    """Where a statement is."""

    QUEUED = "QUEUED"
    PLANNING = "PLANNING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


ENDED: Final = frozenset({State.FINISHED, State.FAILED, State.CANCELED})


class StatementRequest(Struct, frozen=True):
    """What is asked."""

    sql: str
    catalog: str = ""
    """What names without a catalog are relative to."""
    namespace: tuple[str, ...] = ()
    parameters: Mapping[str, Any] | Sequence[Any] = ()
    """Values of `:name` or `?` in the statement: JSON values, or `{"type": "DATE", "value":
    "2026-01-31"}`."""
    timeout_s: float | None = None
    statement_id: str | None = None
    """Of the client's choice (a UUID): sending it again is the same statement."""


class Progress(Struct, frozen=True):
    """How far it is."""

    fragments: int = 0
    fragments_done: int = 0
    rows_scanned: int = 0
    bytes_scanned: int = 0
    bytes_total: int = 0


class StatementInfo(Struct, frozen=True):
    """A statement at one time."""

    id: str
    state: State
    created_us: int
    elapsed_ms: int
    engine: str = ""
    """Empty until it is known."""
    reason: str = ""
    """Why that engine: one of the reasons of `distribution.py`."""
    schema: "pa.Schema | None" = None
    """None until it is known."""
    rows: int = 0
    """Fetched or ready to be."""
    progress: Progress = Progress()
    error: CynosureError | None = None
    tables: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()


class Page(NamedTuple):
    """Some of the results, in order."""

    number: int
    batches: "list[pa.RecordBatch]"
    next: int | None
    """The number of the page behind it; None when this is the last."""


class Statements(Protocol):
    """What the API asks. `NotFound` for a statement that is not this user's."""

    async def submit(self, session: CatalogSession, request: StatementRequest) -> StatementInfo:
        """Take a statement; refuses at once what can be refused without the catalog (`SqlError`, 429)."""
        ...

    async def get(self, session: CatalogSession, statement_id: str, *, wait_s: float = 0.0) -> StatementInfo:
        """How it is; waits until its state or its next page changes, for so long at most."""
        ...

    async def fetch(
        self, session: CatalogSession, statement_id: str, number: int, *, wait_s: float = 0.0
    ) -> Page | None:
        """A page; None while it is not ready. Only the last one that was fetched can be fetched again."""
        ...

    async def cancel(self, session: CatalogSession, statement_id: str) -> StatementInfo:
        """End it. Nothing of it goes on running; ended ones stay as they are."""
        ...

    def list_own(self, session: CatalogSession) -> list[StatementInfo]:
        """Those of the user that are remembered, the newest first."""
        ...

    async def close(self) -> None:
        """End everything."""
        ...
