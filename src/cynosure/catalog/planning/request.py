"""What a client wants to scan, checked against one version of a table.

A maintainer must not break: whatever cannot be understood exactly is refused with the field that is wrong. A
name or a filter that is only guessed makes a query miss rows.
"""

from typing import Final, NoReturn

from msgspec import Raw, Struct

from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.expressions import bind, parse_expression
from cynosure.iceberg.expressions.bound import BoundExpression
from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.snapshots import Snapshot
from cynosure.iceberg.types import StructType

_MAX_FILTER_BYTES: Final = 2**20
_MAX_NAMES: Final = 10_000
_METADATA_COLUMNS: Final = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
        "_change_type",
        "_change_ordinal",
        "_commit_snapshot_id",
    }
)
"""Columns that readers make themselves; Iceberg's Java client selects them like any other."""
_NONE: Final = (b"", b"null")


class ScanRequest(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A request as the protocol has it. Kept with plans, so a new field needs a default."""

    snapshot_id: int | None = None
    select: tuple[str, ...] | None = None
    filter: Raw = Raw(b"")
    min_rows_requested: int | None = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    stats_fields: tuple[str, ...] | None = None


class Scan(Struct, frozen=True):
    """A request that fits the table."""

    schema: Schema
    expression: BoundExpression
    filter_json: bytes | None
    """The filter as it came; None for everything."""
    stats_ids: frozenset[int]
    min_rows: int | None
    snapshot: Snapshot | None
    """The state to read; None for a table without one, and for what was added in between."""
    added_by: tuple[Snapshot, ...] | None = None
    """Of an incremental scan: the appends whose files are wanted, oldest first."""


def read_scan(request: ScanRequest, metadata: TableMetadata) -> Scan:
    """The request on this version of the table; `BadInput` names what does not fit."""
    added_by: tuple[Snapshot, ...] | None = None
    snapshot: Snapshot | None = None
    last: Snapshot | None
    if request.start_snapshot_id is not None or request.end_snapshot_id is not None:
        last, added_by = _find_appends(request, metadata)
    else:
        last = snapshot = _find_snapshot(request, metadata)
    schema = metadata.current_schema()
    if request.use_snapshot_schema and last is not None and last.schema_id is not None:
        schema = metadata.find_schema(last.schema_id) or schema
    _find_ids(request.select, schema, request, field="select")
    min_rows = request.min_rows_requested
    if min_rows is not None and min_rows < 0:
        _refuse("A number of rows is not negative", "min-rows-requested", "Send 0 or more, or leave it out.")
    expression, filter_json = _read_filter(request, schema)
    return Scan(
        schema=schema,
        expression=expression,
        filter_json=filter_json,
        stats_ids=_find_ids(request.stats_fields, schema, request, field="stats-fields"),
        min_rows=min_rows,
        snapshot=snapshot,
        added_by=added_by,
    )


def _find_snapshot(request: ScanRequest, metadata: TableMetadata) -> Snapshot | None:
    if request.snapshot_id is None:
        return metadata.find_current_snapshot()
    return _require_snapshot(request.snapshot_id, metadata, "snapshot-id")


def _find_appends(request: ScanRequest, metadata: TableMetadata) -> tuple[Snapshot, tuple[Snapshot, ...]]:
    """The end of an incremental scan, and the appends from its start to there."""
    if request.snapshot_id is not None:
        fix = "Send snapshot-id alone, or start-snapshot-id and end-snapshot-id."
        _refuse("A scan is of one state or of what came between two", "snapshot-id", fix)
    start, end = request.start_snapshot_id, request.end_snapshot_id
    for name, value in (("start-snapshot-id", start), ("end-snapshot-id", end)):
        if value is None:
            _refuse("An incremental scan has a start and an end", name, "Send both snapshot ids.")
    assert end is not None  # noqa: S101 - said just above
    last = _require_snapshot(end, metadata, "end-snapshot-id")
    between: list[Snapshot] = []
    at: Snapshot | None = last
    # The start itself may have expired by now: that its child names it as parent is enough.
    while at is not None and at.snapshot_id != start:
        between.append(at)
        parent = at.parent_snapshot_id
        if parent == start:
            break
        # A damaged table may go round in circles.
        is_over = parent is None or len(between) > len(metadata.snapshots)
        at = None if is_over or parent is None else metadata.find_snapshot(parent)
    if at is None:
        fix = "Start at a snapshot that the end was made from, one after the other."
        _refuse("The start is no ancestor of the end", "start-snapshot-id", fix, snapshot_id=start)
    appends = [one for one in reversed(between) if (one.summary or {}).get("operation") == "append"]
    return last, tuple(appends)


def _require_snapshot(snapshot_id: int, metadata: TableMetadata, field: str) -> Snapshot:
    found = metadata.find_snapshot(snapshot_id)
    if found is None:
        _refuse(
            "The table has no such snapshot",
            field,
            "Name a snapshot of the table; it may have expired.",
            snapshot_id=snapshot_id,
        )
    return found


def _find_ids(
    names: tuple[str, ...] | None, schema: Schema, request: ScanRequest, *, field: str
) -> frozenset[int]:
    if not names:
        return frozenset()
    if len(names) > _MAX_NAMES:
        _refuse("Too many columns are named", field, f"Name at most {_MAX_NAMES}.")
    known = schema.ids_by_path
    if not request.case_sensitive:
        known = {path.lower(): id_ for path, id_ in known.items()}
    found: set[int] = set()
    for at, name in enumerate(names):
        id_ = known.get(name if request.case_sensitive else name.lower())
        if id_ is not None:
            found.add(id_)
        elif name not in _METADATA_COLUMNS:
            _refuse(
                "The table has no such column",
                f"{field}[{at}]",
                "Name a column of the table as its schema spells it.",
                column=name[:200],
            )
    return frozenset(found)


def _read_filter(request: ScanRequest, schema: Schema) -> tuple[BoundExpression, bytes | None]:
    json = bytes(request.filter)
    if json in _NONE:
        return TRUE, None
    if len(json) > _MAX_FILTER_BYTES:
        fix = f"Send at most {_MAX_FILTER_BYTES} bytes; use a range for many values."
        _refuse("The filter is too large", "filter", fix, bytes=len(json))
    try:
        expression = parse_expression(json)
    except TooLarge as error:
        # 400, not 413: it is the filter that is wrong, and the rest of the body has been read.
        raise BadInput(error.message, field=error.field, fix=error.fix) from error
    bound = bind(
        expression,
        StructType(schema.fields),
        is_case_sensitive=request.case_sensitive,
        are_times_numbers=True,
    )
    return bound, None if bound == TRUE else json


def _refuse(message: str, field: str, fix: str, **details: object) -> NoReturn:
    raise BadInput(message, field=field, fix=fix, **details)
