"""What a table's reader must hide, checked against the schema that it is read with.

A maintainer must not break: a filter of which one leaf, field or constant is not understood exactly hides the
table (`PolicyHides`, naming the policies). Nothing here ever falls back to a weaker filter.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions import bind, encode_expression, parse_expression
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    TRUE,
    Always,
    And,
    Apply,
    Comparison,
    Expression,
    IdReference,
    Membership,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import StructType, children, encode_type
from cynosure.query.catalog_access.planning import write_by_id
from cynosure.query.catalog_access.port import OpenedTable
from cynosure.query.errors import PolicyHides

_IN_MAPPING: Final = "in-mapping"
_MOST_BYTES: Final = 2**19
"""Of a filter that is sent to choose files; the catalog takes twice that."""

Values = Callable[[int, int], Sequence[Any]]
"""Of the mapping with this place in `RowFilter.mappings`, for the column with this field id: JSON values."""


def find_mappings(table: OpenedTable) -> tuple[tuple[int, int], ...]:
    """The mappings that a row filter asks: place in `RowFilter.mappings`, and field id of the column."""
    found: dict[tuple[int, int], None] = {}

    def see(mapping: int, field_id: int) -> object:
        found[mapping, field_id] = None
        return True

    _replace_mappings(table, see)
    return tuple(found)


def resolve_filter(
    table: OpenedTable, schema: Schema, values: Mapping[tuple[int, int], Sequence[Any]]
) -> Expression:
    """The row filter by field id, with constants of the columns' exact types, and values for mappings."""

    def fill(mapping: int, field_id: int) -> object:
        known = values.get((mapping, field_id))
        type_ = schema.find_type(field_id)
        if known is None or type_ is None:
            raise hiding(table)
        if not known:
            return False
        literals = {"type": "literals", "values": list(known), "data-type": encode_type(type_)}
        return {"type": "in", "child": {"type": "reference", "id": field_id}, "values": literals}

    json = _replace_mappings(table, fill)
    try:
        expression = parse_expression(json, field="required-row-filter")
        _check(expression)
        return write_by_id(bind(expression, StructType(schema.fields), field="required-row-filter"))
    except BadInput as error:
        raise hiding(table) from error


def masked_ids(table: OpenedTable, schema: Schema) -> frozenset[int]:
    """Fields that are shown otherwise, with all that is inside them."""
    found: set[int] = set()
    for mask in table.masks:
        place = schema.places.get(mask.field_id)
        if place is None:
            raise hiding(table)
        pending = [place.field]
        while pending:
            field = pending.pop()
            found.add(field.id)
            pending += children(field.type)
    return frozenset(found)


def prunable(row_filter: Expression, masked: frozenset[int], schema: Schema) -> Expression:
    """The parts of a row filter that may choose files: those without masked columns."""
    # A struct with a masked field inside counts as masked here, as at the catalog.
    around = {
        outer.id for id_ in masked if (place := schema.places.get(id_)) is not None for outer in place.around
    }
    hidden = masked | around
    kept: Expression = TRUE
    pending = [row_filter]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending += (node.right, node.left)
        elif not columns_of(node) & hidden:
            kept = both(kept, node)
    return kept


def both(one: Expression, other: Expression) -> Expression:
    """Joined by `and`."""
    if one == TRUE:
        return other
    return one if other == TRUE else And(one, other)


def columns_of(expression: Expression) -> frozenset[int]:
    """The fields that a filter by ids asks about."""
    return fold(expression, _expand_columns)


def encode(expression: Expression) -> bytes:
    """As scan tasks have it."""
    return encode_expression(expression)


def passable(expression: Expression) -> Expression:
    """The same, or no condition at all where it is too large to be read on the other side.

    Only for what saves work: the user's predicates, and what the catalog chooses files by.
    """
    json = encode_expression(expression)
    if len(json) > _MOST_BYTES:
        return TRUE
    try:
        parse_expression(json)
    except BadInput:
        return TRUE
    return expression


def hiding(table: OpenedTable) -> PolicyHides:
    """Says which policies; not why in the words of any constant."""
    return PolicyHides(
        "A policy of this table cannot be applied to it as it is read here, so it is hidden",
        fix="Have the policy or the table corrected; or read a version of the table that the policy fits.",
        table=str(table.name),
        policies=", ".join(table.policies),
    )


def _expand_columns(node: Expression) -> tuple[Sequence[Expression], Join[frozenset[int]]]:
    match node:
        case And(left, right) | Or(left, right):
            return (left, right), lambda parts: parts[0] | parts[1]
        case Not(child):
            return (child,), lambda parts: parts[0]
        case Always():
            return (), lambda _: frozenset()
        case Comparison(_, left, right):
            values: tuple[object, ...] = (left, right)
        case Unary(_, value) | Membership(_, value, _):
            values = (value,)
    ids = frozenset(each.id for each in values if isinstance(each, IdReference))
    return (), lambda _: ids


def _check(expression: Expression) -> None:
    """Refuse what a filter is never sent with: complements, functions, columns by name."""
    pending: list[Any] = [expression]
    while pending:
        node = pending.pop()
        match node:
            case And(left, right) | Or(left, right):
                pending += (left, right)
            case Always():
                pass
            case Unary(_, IdReference()) | Membership(_, IdReference(), _):
                pass
            case Comparison(_, IdReference(), right) if not isinstance(right, IdReference | Apply):
                pass
            case _:
                raise BadInput(
                    "A row filter is about columns by id",
                    field="required-row-filter",
                    fix="Use another form.",
                )


def _replace_mappings(table: OpenedTable, give: Callable[[int, int], object]) -> Any:
    """The filter's JSON with something in place of each leaf that asks a mapping table."""
    try:
        root = [msgspec.json.decode(table.row_filter.expression)]
        pending: list[tuple[Any, Any]] = [(root, 0)]
        while pending:
            holder, key = pending.pop()
            node = holder[key]
            if not isinstance(node, dict):
                continue
            if node.get("type") == _IN_MAPPING:
                if node.keys() != {"type", "term", "mapping"} or node["term"].keys() != {"type", "id"}:
                    raise hiding(table)
                mapping, field_id = node["mapping"], node["term"]["id"]
                if type(mapping) is not int or type(field_id) is not int:
                    raise hiding(table)
                if not 0 <= mapping < len(table.row_filter.mappings) or node["term"]["type"] != "reference":
                    raise hiding(table)
                holder[key] = give(mapping, field_id)
                continue
            pending += [(node, name) for name in ("left", "right", "child") if name in node]
        return root[0]
    except (KeyError, TypeError, AttributeError, msgspec.DecodeError) as error:
        raise hiding(table) from error
