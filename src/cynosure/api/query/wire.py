"""Bodies of the query API.

A maintainer must not break: what is wrong with a request is said before anything is done, with the field and
how to correct it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from cynosure.api.query.errors import QueryErrorModel, model_of
from cynosure.api.query.values import sql_type
from cynosure.common.errors import BadInput
from cynosure.common.quantities import parse_duration
from cynosure.query.coordinator.statement import State, StatementInfo, StatementRequest

if TYPE_CHECKING:
    import pyarrow as pa

BASE: Final = "/api/query/v1"
FIRST_PAGE: Final = 1
MAX_WAIT_S: Final = 30.0
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_PARAMETERS: Final = 1_000

Wait = Annotated[float, Meta(ge=0.0, le=MAX_WAIT_S)]


class StatementBody(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A statement to run."""

    sql: str
    """One statement, in Spark's dialect."""
    catalog: str = ""
    """Names without a catalog are in this one."""
    namespace: list[str] | str = ""
    """Names without a namespace are in this one: `["a", "b"]`, or `"a.b"`."""
    parameters: dict[str, Any] | list[Any] = []
    """Values of `:name` (an object) or `?` (a list): JSON, or `{"type": "DATE", "value": "2026-01-31"}`."""
    timeout: str | None = None
    """Ends the statement after so long: `30s`, `PT2M`. Never longer than the gateway allows."""
    statement_id: str | None = None
    """A UUID of your choice: sending it again is the same statement."""
    wait: Wait = 0.0
    """Seconds to wait for it to be planned."""

    def to_request(self) -> StatementRequest:
        """What the coordinator is asked; `BadInput` for what it cannot be."""
        if not self.sql.strip():
            raise BadInput("There is no statement", field="sql", fix="Send one SQL statement.")
        if self.statement_id is not None and not _ID.fullmatch(self.statement_id):
            raise BadInput(
                "The id of a statement is a UUID", field="statement-id", fix="Send a new UUID, or none."
            )
        namespace = self.namespace.split(".") if isinstance(self.namespace, str) else self.namespace
        if self.namespace and not all(namespace):
            raise BadInput(
                "A namespace has no empty names", field="namespace", fix='Write "a.b", or a list of names.'
            )
        return StatementRequest(
            sql=self.sql,
            catalog=self.catalog,
            namespace=tuple(namespace) if self.namespace else (),
            parameters=self._read_parameters(),
            timeout_s=self._read_timeout(),
            statement_id=self.statement_id and self.statement_id.lower(),
        )

    def _read_parameters(self) -> Mapping[str, Any] | list[Any]:
        if len(self.parameters) > _MAX_PARAMETERS:
            raise BadInput("Too many parameters", field="parameters", fix=f"Send at most {_MAX_PARAMETERS}.")
        for name in self.parameters if isinstance(self.parameters, dict) else ():
            if not _NAME.fullmatch(name):
                raise BadInput(
                    "Not the name of a parameter",
                    field="parameters",
                    fix="Use letters, digits and underscores, as in :name.",
                )
        values = self.parameters.values() if isinstance(self.parameters, dict) else self.parameters
        if any(_is_nested(each) for each in values):
            raise BadInput(
                "The value of a parameter is no single value",
                field="parameters",
                fix='Send texts, numbers, booleans, null, or {"type": "DATE", "value": "2026-01-31"}.',
            )
        return self.parameters

    def _read_timeout(self) -> float | None:
        if self.timeout is None:
            return None
        try:
            found = parse_duration(self.timeout)
        except ValueError:
            found = timedelta(0)
        if found <= timedelta(0):
            raise BadInput("Not a duration", field="timeout", fix="Write 30s, 2m or PT2M.")
        return found.total_seconds()


def _is_nested(value: Any) -> bool:
    """Whether it holds more than the type and value of one parameter. Such a body can be of any depth."""
    parts = value.values() if isinstance(value, dict) else (value,)
    return any(isinstance(each, dict | list) for each in parts)


class WaitQuery(Struct, frozen=True):
    """How long an answer may take."""

    wait: Wait = 0.0
    """Seconds to wait for something new; at most 30."""


class Column(Struct, frozen=True):
    """A column of results."""

    name: str
    type: str
    """As Spark writes types: `bigint`, `decimal(10,2)`, `array<string>`."""


class ProgressBody(Struct, frozen=True, rename="kebab"):
    """How far a statement is."""

    fragments: int = 0
    fragments_done: int = 0
    rows_scanned: int = 0
    bytes_scanned: int = 0
    bytes_total: int = 0


class StatementAnswer(Struct, frozen=True, rename="kebab"):
    """A statement at one time."""

    id: str
    state: State
    created_at: datetime
    elapsed_ms: int
    engine: str
    """`local`, `spark-isolated`, `spark-native`; empty until it is known."""
    reason: str
    """Why that engine."""
    columns: list[Column] | None
    """None until they are known."""
    rows: int
    progress: ProgressBody
    tables: tuple[str, ...]
    policies: tuple[str, ...]
    """Names of those that were applied."""
    results: str
    """Where its first page is."""
    error: QueryErrorModel | None = None


class StatementList(Struct, frozen=True):
    """Statements of one user, the newest first."""

    statements: list[StatementAnswer]


class ResultPage(Struct, frozen=True):
    """Some of the results, in order. Sent as it is only to describe it: `pages.py` writes it."""

    columns: list[Column]
    rows: list[list[Any]]
    next: str | None
    """Where the page behind it is; None when this is the last."""


class GatewayConfig(Struct, frozen=True, rename="kebab"):
    """What clients may want to know before they ask."""

    version: str
    dialect: str
    page_rows: int
    """Rows of a page at most."""
    max_sql_bytes: int
    max_wait_seconds: float
    timeout_seconds: float
    """The longest that a statement may take."""
    formats: list[str]
    """Media types of results."""


def columns_of(schema: "pa.Schema") -> list[Column]:
    """The columns of a result."""
    return [Column(each.name, sql_type(each.type)) for each in schema]


def results_path(statement_id: str, page: int = FIRST_PAGE) -> str:
    """Where a page of results is."""
    return f"{BASE}/statements/{statement_id}/results/{page}"


def to_answer(info: StatementInfo) -> StatementAnswer:
    """A statement as clients see it."""
    progress = info.progress
    return StatementAnswer(
        id=info.id,
        state=info.state,
        created_at=datetime.fromtimestamp(info.created_us / 1_000_000, UTC),
        elapsed_ms=info.elapsed_ms,
        engine=info.engine,
        reason=info.reason,
        columns=None if info.schema is None else columns_of(info.schema),
        rows=info.rows,
        progress=ProgressBody(
            progress.fragments,
            progress.fragments_done,
            progress.rows_scanned,
            progress.bytes_scanned,
            progress.bytes_total,
        ),
        tables=info.tables,
        policies=info.policies,
        results=results_path(info.id),
        error=None if info.error is None else model_of(info.error),
    )
