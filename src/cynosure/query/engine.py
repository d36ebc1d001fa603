"""What the coordinator asks of an engine: run one bound statement over governed relations.

Implementations: `query.local` (DuckDB in this process) and `query.spark` (a driver in a process of its own).
Both are held to the same tests.

A maintainer must not break: relations are all that an engine can read. It has no catalog, no files, no
credentials of its own; what comes back has the columns that the statement says, or it is an error.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct

from cynosure.iceberg.types import Type
from cynosure.query.scan_task import Credentials, InlineTask, Mask, ScanTask

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp


class RelationColumn(Struct, frozen=True):
    """A column of a relation: masked or not, its type is the table's."""

    name: str
    type: Type
    is_required: bool = False


class TableRead(Struct, frozen=True):
    """The same relation as a table of the catalog, for the native leaf of Spark, which reads it itself."""

    catalog: str
    namespace: tuple[str, ...]
    name: str
    snapshot_id: int
    """Of the scan; all files of the fragments are of it."""
    is_current_schema: bool
    """Whether it is read with the table's current schema rather than the snapshot's."""
    row_filter: bytes
    masks: tuple[Mask, ...]
    predicates: bytes
    salt: bytes = b""
    metadata: dict[str, Any] = {}
    """Of the table, as the user is told; at least the snapshot is in it."""

    def __repr__(self) -> str:
        return f"TableRead({self.catalog}, {self.namespace}, {self.name}, …)"


class Relation(Struct, frozen=True):
    """One mention of a table in a statement: rows as the user may see them."""

    view: str
    """What the statement calls it now: `cyn_0`, `cyn_1` …; two mentions are two relations."""
    shown: str
    """What people call it: `catalog.namespace.table`."""
    columns: tuple[RelationColumn, ...]
    """Only those that the statement needs. None: only the number of rows counts."""
    fragments: tuple[ScanTask, ...] | tuple[InlineTask, ...]
    """Largest first. None: it is empty."""
    total_bytes: int = 0
    """Of its files. Of a table with restrictions: of all that the row filter leaves, whatever the statement
    asks for. Else sizes would tell which files hold a value, in rows too that nobody shows."""
    most_rows: int = 0
    """That these files have; 0 where nobody counted."""
    table: TableRead | None = None
    """None for rows of the coordinator's own."""
    renew: Callable[[], Awaitable[Credentials]] | None = None
    """Asks for newer credentials of its fragments, as the user; None where there is nothing to renew."""


class EngineQuery(Struct, frozen=True):
    """One statement, ready to run."""

    id: str
    """No other that runs has it."""
    tree: "exp.Expression"
    """A query in sqlglot's tree of the Spark dialect, allowed and bound: its tables are views of
    `relations`."""
    relations: tuple[Relation, ...]
    columns: tuple[str, ...]
    """Names of the result's columns; may repeat."""
    deadline_s: float
    """On the coordinator's monotonic clock."""
    session: "SessionValues"


class SessionValues(Struct, frozen=True):
    """What functions without arguments say, the same in every engine and for every mention."""

    user: str
    catalog: str
    namespace: str
    now_us: int
    time_zone: str = "UTC"


class FragmentReport(Struct, frozen=True):
    """What became of one fragment."""

    fragment_id: str
    is_success: bool
    elapsed_ms: int
    rows: int
    worker: str = ""
    bytes: int = 0
    attempt: int = 0


class RunningFragment(Struct, frozen=True):
    """A fragment that is read at this moment."""

    fragment_id: str
    worker: str
    attempt: int
    """From 0."""
    elapsed_ms: int
    rows: int
    """As far as it was told."""
    bytes: int


OnFragment = Callable[[FragmentReport], None]


class Results(Protocol):
    """Rows of a statement while they come."""

    @property
    def schema(self) -> "pa.Schema":
        """Their columns."""
        ...

    def batches(self) -> AsyncIterator["pa.RecordBatch"]:
        """Once. Whoever reads slowly holds the engine back. Errors are of `query.errors`."""
        ...

    async def close(self) -> None:
        """End it, finished or not: nothing of it goes on running. May be called twice.

        It does not wait for a read that waits for a storage: of that nobody hears any more.
        """
        ...


class WorkerInfo(Struct, frozen=True):
    """Where scans run besides this process: of Spark, an executor."""

    name: str
    is_healthy: bool
    active_fragments: int = 0
    cores: int = 1


class Cluster(Protocol):
    """Who could scan."""

    async def workers(self) -> Sequence[WorkerInfo]:
        """All that are known, healthy or not. Nothing is started for this answer."""
        ...


@runtime_checkable
class TellsFragments(Protocol):
    """An engine that knows what is read at a moment."""

    def list_running(self, query_id: str) -> "list[RunningFragment] | None":
        """Fragments of a query that are read now, in each place that reads them; None: nobody knows.

        Their numbers count hidden rows: whoever shows them decides about that.
        """
        ...


@runtime_checkable
class Renews(Protocol):
    """An engine that can run a statement so that its credentials are renewed while it reads."""

    @property
    def renewing(self) -> "Engine | None":
        """For what the storage refused; None where every statement runs so."""
        ...


class Engine(Protocol):
    """Runs statements."""

    @property
    def name(self) -> str:
        """`local`, `spark-isolated`, `spark-native`."""
        ...

    def find_reason_against(self, query: EngineQuery) -> str | None:
        """Why this engine cannot run a query, in constant text and names; None when it can."""
        ...

    async def execute(self, query: EngineQuery, on_fragment: OnFragment) -> Results:
        """Begin; `Results` when the columns are known. Cancelled or failed, nothing of it goes on running."""
        ...

    async def close(self) -> None:
        """End everything."""
        ...
