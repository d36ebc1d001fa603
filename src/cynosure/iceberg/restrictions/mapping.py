"""A part of a row filter that asks another table: `column IN (SELECT value FROM table WHERE filter)`.

It is a call of a function whose catalog is `MAPPING` and whose identifier is the table, so that everything
which walks over filters walks over it as well. A trusted engine is told it as a node of its own (`wire.py`),
looks the values up, and puts `in` with these in its place.

A maintainer must not break: it is never below a `not`. Values that the mapping does not have would then show
rows, and NULL among its values would hide all of them in SQL and none in an engine that leaves it out.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.describe import describe
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    Always,
    And,
    Apply,
    Comparison,
    Constant,
    Expression,
    Function,
    IdReference,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
)

MAPPING: Final = "cynosure.mapping"
"""No catalog has this name in a filter: functions of other catalogs are refused there."""
NODE: Final = "in-mapping"
"""What the part is called in JSON."""


class Mapped(Struct, frozen=True):
    """What is asked of a mapping table."""

    column: NamedReference | IdReference
    """Of the table that is filtered."""
    table: tuple[str, ...]
    """The mapping table: its namespace, and its name."""
    value: str
    """Its column that must have the value."""
    filter: Expression
    """Which of its rows count; its columns by name."""

    @property
    def table_name(self) -> str:
        """As messages name it."""
        return ".".join(self.table)


def in_mapping(mapped: Mapped) -> Comparison:
    """The predicate."""
    function = Function(mapped.table, MAPPING)
    arguments = (mapped.column, NamedReference(mapped.value), mapped.filter)
    return Comparison("eq", Apply(function, arguments), Constant(value=True))


def find_mapped(node: Expression) -> Mapped | None:
    """What a predicate asks of a mapping table, if it does."""
    match node:
        case Comparison(
            "eq",
            Apply(
                Function(table, catalog),
                (
                    NamedReference() | IdReference() as column,
                    NamedReference(value),
                    Always() | And() | Or() | Not() | Unary() | Comparison() | Membership() as kept,
                ),
            ),
            Constant(True),
        ) if catalog == MAPPING:
            return Mapped(column, table, value, kept)
    return None


def describe_mapped(expression: Expression) -> str:
    """As `describe`, with mapping tables as SQL has them."""

    def expand(node: Expression) -> tuple[Sequence[Expression], Join[str]]:
        match node:
            case And(left, right):
                return (left, right), lambda parts: f"({parts[0]} and {parts[1]})"
            case Or(left, right):
                return (left, right), lambda parts: f"({parts[0]} or {parts[1]})"
        mapped = find_mapped(node)
        text = describe(node) if mapped is None else _describe(mapped)
        return (), lambda _: text

    return fold(expression, expand)


def _describe(mapped: Mapped) -> str:
    column = mapped.column.name if isinstance(mapped.column, NamedReference) else f"#{mapped.column.id}"
    where = describe(mapped.filter)
    return f"{column} in (select {mapped.value} from {mapped.table_name} where {where})"  # noqa: S608 - for people


# JSON of policies.

_PARTS: Final = frozenset({"type", "term", "mapping"})
_OF_MAPPING: Final = frozenset({"namespace", "name", "column", "filter"})


def read_nodes(json: Any, *, field: str) -> Any:
    """JSON of a filter with the nodes `in-mapping` written as calls, which the expressions' parser knows.

    {"type": "in-mapping", "term": "region",
     "mapping": {"namespace": ["gov"], "name": "regions", "column": "region", "filter": {…}}}
    """
    if not isinstance(json, dict):
        return json
    root = {"left": json}
    pending = [root]
    while pending:
        node = pending.pop()
        for part in ("left", "right", "child"):
            below = node.get(part)
            if not isinstance(below, dict):
                continue
            if below.get("type") == NODE:
                node[part] = _read_node(below, field)
            else:
                pending.append(below)
    return root["left"]


def _read_node(node: dict[str, Any], field: str) -> dict[str, Any]:
    term, mapping = node.get("term"), node.get("mapping")
    if isinstance(term, dict) and term.keys() == {"type", "name"} and term["type"] == "reference":
        term = term["name"]
    if node.keys() != _PARTS or not isinstance(term, str) or not isinstance(mapping, dict):
        raise BadInput(
            "A mapping has a term, which is a column by name, and a mapping",
            field=field,
            fix='Send {"type": "in-mapping", "term": "COLUMN", "mapping": {…}}.',
        )
    namespace, name, value = (mapping.get(part) for part in ("namespace", "name", "column"))
    path = [*namespace, name] if isinstance(namespace, list) else [name]
    is_whole = len(path) > 1 and mapping.keys() <= _OF_MAPPING
    if not is_whole or not all(isinstance(each, str) and each for each in (*path, value)):
        raise BadInput(
            "A mapping table has a namespace, a name, a column and may have a filter",
            field=f"{field}.mapping",
            fix='Send {"namespace": ["NS"], "name": "TABLE", "column": "COLUMN", "filter": {…}}.',
        )
    kept = mapping.get("filter", True)
    if isinstance(kept, bool):
        kept = {"type": "true" if kept else "false"}
    return {
        "type": "eq",
        "left": {
            "type": "apply",
            "function": {"catalog": MAPPING, "identifier": path},
            "arguments": [
                {"type": "reference", "name": term},
                {"type": "reference", "name": value},
                kept,
            ],
        },
        "right": True,
    }
