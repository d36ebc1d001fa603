"""How a query would be answered: engine and reason, and of each table what is read and what is hidden.

A maintainer must not break: no constant of a policy, no credential, no path; and of tables with restrictions
neither numbers of files nor of bytes nor of rows: they tell how much is hidden.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cynosure.iceberg.expressions import describe
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    TRUE,
    Always,
    And,
    Apply,
    Comparison,
    Constant,
    Expression,
    IdReference,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
    Value,
)
from cynosure.iceberg.schema import Schema
from cynosure.query.coordinator.binding import Bound, GovernedTable
from cynosure.query.coordinator.distribution import Choice
from cynosure.query.coordinator.inline import InlineTable
from cynosure.query.coordinator.manifest_tables import ManifestTable
from cynosure.query.coordinator.relations import Planned
from cynosure.query.scan_task import ScanTask
from cynosure.query.sql.bound import MentionNeed

_SIGNS = {"lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">=", "eq": "=", "not-eq": "!="}


def explain(bound: Bound, planned: Planned, choice: Choice, user: str) -> list[str]:
    """Lines for people."""
    lines = [f"engine: {choice.engine.name} ({choice.shown})", f"user: {user}"]
    if bound.views:
        lines.append(f"views: {', '.join(bound.views)}")
    relations = {each.view: each for each in planned.relations}
    for need in bound.query.needs:
        source = bound.sources[need.mention.number]
        if isinstance(source, InlineTable):
            lines += [f"{need.view}: {source.shown}", "  rows of the gateway's own"]
            continue
        if isinstance(source, ManifestTable):
            lines += [f"{need.view}: {source.shown}", "  metadata of the table, from its manifests"]
            continue
        number = need.mention.number
        lines += _explain_table(need, source, planned.filters[number], planned.pushed[number])
        relation = relations[need.view]
        if not source.opened.is_restricted:
            files = {
                file.path for task in relation.fragments if isinstance(task, ScanTask) for file in task.files
            }
            lines.append(
                f"  files: {len(files)}, {_size(relation.total_bytes)}, fragments: {len(relation.fragments)}"
            )
    return lines


def _explain_table(
    need: MentionNeed, source: GovernedTable, row_filter: Expression, pushed: Expression
) -> list[str]:
    table, schema = source.opened, source.schema
    columns = [schema.places[id_].path for id_ in need.columns]
    lines = [
        f"{need.view}: {table.name}",
        f"  snapshot: {table.snapshot_id or 'none'}{_asked_for(need)}, schema: "
        f"{'current' if table.is_current_schema else 'of the snapshot'}",
        f"  columns: {', '.join(columns) or 'none, only the number of rows'}",
    ]
    if table.policies:
        lines.append(f"  policies: {', '.join(table.policies)}")
    if row_filter != TRUE:
        lines.append(f"  row filter: {describe(_by_name(row_filter, schema))}")
    if table.masks:
        masks = [f"{schema.places[each.field_id].path} {each.action}" for each in table.masks]
        lines.append(f"  masks: {', '.join(masks)}")
    if pushed != TRUE:
        lines.append(f"  pushed: {fold_text(_by_name(pushed, schema))}")
    return lines


def _asked_for(need: MentionNeed) -> str:
    """The time that a table is read at, as it was worked out."""
    travel = need.mention.travel
    if travel is None or travel.timestamp_us is None:
        return ""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=travel.timestamp_us)
    return f" of {moment:%Y-%m-%d %H:%M:%S}Z"


def _size(count: int) -> str:
    """Bytes for people."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 2**power:
            return f"{count / 2**power:.1f} {unit}"
    return f"{count} B"


def _by_name(expression: Expression, schema: Schema) -> Expression:
    def rename(value: Value) -> Value:
        if isinstance(value, IdReference) and (place := schema.places.get(value.id)) is not None:
            return NamedReference(place.path)
        return value

    def expand(node: Expression) -> tuple[Sequence[Expression], Join[Expression]]:
        leaf: Expression
        match node:
            case And(left, right):
                return (left, right), lambda parts: And(parts[0], parts[1])
            case Or(left, right):
                return (left, right), lambda parts: Or(parts[0], parts[1])
            case Not(child):
                return (child,), lambda parts: Not(parts[0])
            case Always():
                leaf = node
            case Unary(op, value):
                leaf = Unary(op, rename(value))
            case Comparison(op, left, right):
                leaf = Comparison(op, rename(left), rename(right))
            case Membership(op, value, values):
                leaf = Membership(op, rename(value), values)
        return (), lambda _: leaf

    return fold(expression, expand)


def fold_text(expression: Expression) -> str:
    """A filter of the user's own, with its constants."""

    def expand(node: Expression) -> tuple[Sequence[Expression], Join[str]]:
        text = ""
        match node:
            case And(left, right):
                # `or` and `not` have parentheses, so that long conditions, which are mostly `and`, need none.
                return (left, right), lambda parts: f"{parts[0]} and {parts[1]}"
            case Or(left, right):
                return (left, right), lambda parts: f"({parts[0]} or {parts[1]})"
            case Not(child):
                return (child,), lambda parts: f"not ({parts[0]})"
            case Always(answer):
                text = "true" if answer else "false"
            case Unary(op, value):
                text = f"{_text(value)} {op}"
            case Comparison(op, left, right):
                text = f"{_text(left)} {_SIGNS.get(op, op)} {_text(right)}"
            case Membership(op, value, values):
                text = f"{_text(value)} {op} ({', '.join(_text(each) for each in values)})"
        return (), lambda _: text

    return fold(expression, expand)


def _text(value: Value) -> str:
    match value:
        case NamedReference(name):
            return name
        case IdReference(id_):
            return f"#{id_}"
        case Constant(json):
            return repr(json)
        case Apply(function):
            return f"{'.'.join(function.identifier)}(…)"
