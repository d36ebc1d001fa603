"""What the coordinator asks the catalog for one user.

A maintainer must not break: `open_table` says what must be hidden, from the same answer as the schema; a plan
says it again, and if both differ, the plan is refused (`Conflict`) and the statement is bound anew.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from cynosure.iceberg.expressions.nodes import Expression
from cynosure.query.scan_task import Credentials, DataFile, DeleteFile, Mask
from cynosure.query.sql.bound import TimeTravel


class TableName(Struct, frozen=True):
    """A table by its full name."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join((self.catalog, *self.namespace, self.name))


class MappingFilter(Struct, frozen=True):
    """A part of a row filter that asks another table: `column in (select value_column from table …)`."""

    field_id: int
    """Of the filtered table."""
    table: TableName
    value_column: str
    filter: bytes
    """JSON of an expression by column names of the mapping table, for this reader."""
    policy: str


class RowFilter(Struct, frozen=True):
    """A row filter: JSON of an expression by field id, in which leaves `in-mapping` stand for mappings.

    `mappings[i]` belongs to the leaf with `"mapping": i`. The coordinator puts values in their place.
    """

    expression: bytes = b"true"
    mappings: tuple[MappingFilter, ...] = ()


class OpenedTable(Struct, frozen=True):
    """A table at one snapshot, as the user may see it."""

    name: TableName
    uuid: str
    snapshot_id: int
    """0: it has none, and is empty."""
    schema: bytes
    """JSON, to read with: of the snapshot for time travel by id, tag or time; current for branches and
    main."""
    is_current_schema: bool
    row_filter: RowFilter
    masks: tuple[Mask, ...]
    policies: tuple[str, ...]
    """Names of what restricts the user here."""
    places: tuple[str, ...]
    name_mapping: bytes = b""
    metadata: dict[str, Any] = {}
    """As the user is told: for DESCRIBE and metadata tables."""
    restrictions: bytes = b""
    """`read-restrictions` of the same answer, in canonical JSON: a plan must say the same."""

    @property
    def is_restricted(self) -> bool:
        """Whether anything is hidden."""
        return bool(self.masks or self.policies or self.row_filter.expression != b"true")


class OpenedView(Struct, frozen=True):
    """A view that the user may see."""

    name: TableName
    sql: str
    dialect: str
    columns: tuple[str, ...]
    default_catalog: str
    default_namespace: tuple[str, ...]


class PlannedFiles(Struct, frozen=True):
    """Files of one scan."""

    files: tuple[DataFile, ...]
    deletes: tuple[DeleteFile, ...]
    credentials: Credentials
    renew: Callable[[], Awaitable[Credentials]] | None
    """Asks for newer ones, as the same user; None for local files."""
    offsets: tuple[tuple[int, ...], ...] = ()
    """Of each file, where it can be split; empty where that is not known."""
    places: tuple[str, ...] = ()
    """Where the credentials open files, besides the table's own places."""

    @property
    def total_bytes(self) -> int:
        """Of data files."""
        return sum(each.size_bytes for each in self.files)


class QueryEvent(Struct, frozen=True, rename="kebab"):
    """What is recorded of a statement."""

    statement_id: str
    """Told again, it is the same event. No other statement has it, whatever id its user chose."""
    outcome: str
    """FINISHED, FAILED, CANCELED."""
    sql: str
    """With `?` in place of its constants."""
    tables: tuple[str, ...]
    policies: tuple[str, ...]
    rows: int
    bytes: int
    elapsed_ms: int
    engine: str
    """`local`, `spark-isolated`, `spark-native`, `none`."""
    reason: str = ""
    """Why that engine."""
    error: str = ""
    """The kind of error only."""


class Listed(Struct, frozen=True):
    """A name in a listing."""

    name: tuple[str, ...]
    kind: str


class CatalogSession(Protocol):
    """The catalog for one user. `NoSuchRelation` both for what is not there and for what is not theirs."""

    @property
    def user(self) -> str:
        """The principal's name."""
        ...

    @property
    def owner(self) -> str:
        """Who statements belong to: the realm and the principal's stable id."""
        ...

    async def open_name(self, name: TableName, travel: TimeTravel | None) -> OpenedTable | OpenedView:
        """A table or view. `PolicyHides` when a policy that does not fit hides it."""
        ...

    async def plan(self, table: OpenedTable, columns: Sequence[int], wanted: Expression) -> PlannedFiles:
        """The files that may have rows for this filter (by field id), all pages, and how to read them."""
        ...

    async def open_as_gateway(self, name: TableName) -> OpenedTable:
        """A mapping table, with the gateway's own rights. `PolicyHides` when it has none."""
        ...

    async def plan_as_gateway(
        self, table: OpenedTable, columns: Sequence[int], wanted: Expression
    ) -> PlannedFiles:
        """Its files."""
        ...

    def list_catalogs(self) -> AsyncIterator[Listed]:
        """That the user may see; also the following."""
        ...

    def list_namespaces(self, catalog: str, parent: tuple[str, ...]) -> AsyncIterator[Listed]: ...  # noqa: D102
    def list_tables(self, catalog: str, namespace: tuple[str, ...]) -> AsyncIterator[Listed]: ...  # noqa: D102
    def list_views(self, catalog: str, namespace: tuple[str, ...]) -> AsyncIterator[Listed]: ...  # noqa: D102

    async def load_namespace(self, catalog: str, namespace: tuple[str, ...]) -> dict[str, str]:
        """Its properties."""
        ...

    async def record(self, event: QueryEvent) -> None:
        """Put a statement into the audit of the user's realm."""
        ...
