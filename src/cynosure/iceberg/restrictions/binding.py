"""A resolved filter on the columns of a schema: field ids for names, exact values of the columns' types.

Names are matched as SQL does, without regard to case; a name that two columns answer to is refused.

A maintainer must not break: every engine must show the same rows. So what they are known to disagree on is
spelled out: NaN is larger than every number, and the two zeros of floating-point columns are one value.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.bind import bind
from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundExpression,
    BoundMembership,
    BoundReference,
    BoundUnary,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    Always,
    And,
    CompareOp,
    Comparison,
    Constant,
    Expression,
    IdReference,
    Leaf,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.restrictions.language import leaves
from cynosure.iceberg.restrictions.mapping import Mapped, find_mapped, in_mapping
from cynosure.iceberg.restrictions.readers import Reader
from cynosure.iceberg.restrictions.resolving import resolve
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.single_value import write_value
from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    StructType,
    Type,
    is_floating,
)

_LOOKED_UP: Final = frozenset(
    {
        BOOLEAN,
        INT,
        LONG,
        STRING,
        DATE,
        TIME,
        TIMESTAMP,
        TIMESTAMPTZ,
        TIMESTAMP_NS,
        TIMESTAMPTZ_NS,
        UUID,
        BINARY,
    }
)
"""Not floating-point numbers: NaN has no constant, and the two zeros are one value."""
_FINER: Final[dict[Type, Type]] = {TIMESTAMP: TIMESTAMP_NS, TIMESTAMPTZ: TIMESTAMPTZ_NS}


class BoundFilter(Struct, frozen=True):
    """A filter as it is sent, and the fields that its columns are."""

    expression: Expression
    ids: dict[str, int]
    """By the name that the filter uses."""


def bind_filter(expression: Expression, schema: Schema, *, field: str) -> BoundFilter:
    """The filter on a schema; `BadInput` that names the column where it cannot be understood exactly."""
    struct = StructType(schema.fields)
    ids: dict[str, int] = {}

    def expand(node: Expression) -> tuple[Sequence[Expression], Join[Expression]]:
        match node:
            case And(left, right):
                return (left, right), lambda parts: And(parts[0], parts[1])
            case Or(left, right):
                return (left, right), lambda parts: Or(parts[0], parts[1])
            case Not(child):
                return (child,), lambda parts: Not(parts[0])
            case Always():
                return (), lambda _: node
        mapped = find_mapped(node)
        if mapped is not None:
            assert isinstance(mapped.column, NamedReference)  # noqa: S101 - as in every filter before this
            tested = _find_named(mapped.column, struct, field)
            ids[mapped.column.name] = tested.id
            asked = in_mapping(replace(mapped, column=IdReference(tested.id)))
            return (), lambda _: asked
        name, column = _find_column(node, struct, field)
        ids[name] = column.id
        bound = bind(_adapt(node, column.type), struct, is_case_sensitive=False, field=field)
        leaf = _write(bound)
        return (), lambda _: leaf

    return BoundFilter(fold(expression, expand), ids)


def check_mapping(mapped: Mapped, schema: Schema | None, of_mapping: Schema, *, field: str) -> None:
    """Refuse a mapping table that has not what is asked of it, as values of exactly the column's type.

    Without `schema`, which is that of the filtered table, only what is asked of the mapping table counts.
    """
    value = _find_named(NamedReference(mapped.value), StructType(of_mapping.fields), field)
    for leaf in leaves(mapped.filter):
        # Part by part: who reads decides which are used, and for somebody each of them is.
        bind_filter(resolve(leaf, Reader("")), of_mapping, field=field)
    if value.type not in _LOOKED_UP and not isinstance(value.type, DecimalType | FixedType):
        raise BadInput(
            "Values of this type are not looked up in a mapping table",
            field=field,
            fix="Use columns of whole numbers, decimals, texts, dates, times, UUIDs or bytes.",
            column=f"{mapped.table_name}.{mapped.value}",
            type=str(value.type)[:200],
        )
    if schema is None:
        return
    assert isinstance(mapped.column, NamedReference)  # noqa: S101 - as in every filter that is not bound
    tested = _find_named(mapped.column, StructType(schema.fields), field)
    if tested.type != value.type:
        raise BadInput(
            "The column and that of the mapping table differ in type",
            field=field,
            fix="Give both exactly the same type: nothing is cast.",
            column=mapped.column.name,
            type=str(tested.type)[:200],
            mapping_column=f"{mapped.table_name}.{mapped.value}",
            mapping_type=str(value.type)[:200],
        )


def find_ids(columns: Sequence[str], schema: Schema, *, field: str) -> dict[str, int]:
    """The fields that columns are in a schema; `BadInput` for one that is none, or more than one."""
    struct = StructType(schema.fields)
    return {name: _find_named(NamedReference(name), struct, field).id for name in columns}


def _find_column(leaf: Leaf, struct: StructType, field: str) -> tuple[str, BoundReference]:
    column = leaf.left if isinstance(leaf, Comparison) else leaf.child
    if not isinstance(column, NamedReference):
        raise AssertionError("a resolved filter tests columns by name")  # noqa: TRY004
    return column.name, _find_named(column, struct, field)


def _find_named(column: NamedReference, struct: StructType, field: str) -> BoundReference:
    bound = bind(Unary("not-null", column), struct, is_case_sensitive=False, field=field)
    assert isinstance(bound, BoundUnary)  # noqa: S101 - that is what a test of a column becomes
    assert isinstance(bound.term, BoundReference)  # noqa: S101 - and a column without a function
    return bound.term


def _adapt(leaf: Leaf, type_: Type) -> Leaf:
    """Constants written in SQL, which have a type of their own, as what the column's type reads."""
    if isinstance(leaf, Comparison) and isinstance(leaf.right, Constant):
        return Comparison(leaf.op, leaf.left, _adapt_constant(leaf.right, type_))
    if isinstance(leaf, Membership):
        return Membership(leaf.op, leaf.child, tuple(_adapt_constant(each, type_) for each in leaf.values))
    return leaf


def _adapt_constant(constant: Constant, type_: Type) -> Constant:
    if isinstance(constant.type, DecimalType) and is_floating(type_):
        return Constant(float(constant.value))
    if constant.type is not None and _FINER.get(constant.type) == type_:
        return Constant(constant.value)
    return constant


# What is sent.


def _write(bound: BoundExpression) -> Expression:
    match bound:
        case Always():
            return bound
        case BoundUnary(op, BoundReference(id_)):
            return Unary(op, IdReference(id_))
        case BoundComparison(op, BoundReference(id_, _, type_), value) if is_floating(type_):
            return _write_floating(op, IdReference(id_), type_, value)
        case BoundComparison(op, BoundReference(id_, _, type_), value):
            return Comparison(op, IdReference(id_), _constant(type_, value))
        case BoundMembership(op, BoundReference(id_, _, type_), values):
            every = values
            if is_floating(type_) and 0.0 in values:
                every = (*(each for each in values if each), 0.0, -0.0)
            return Membership(op, IdReference(id_), tuple(_constant(type_, each) for each in every))
    raise AssertionError("a leaf of a filter is about one column")


def _write_floating(op: CompareOp, column: IdReference, type_: Type, value: float) -> Expression:
    zeros = (_constant(type_, 0.0), _constant(type_, -0.0))
    if value == 0 and op in ("eq", "not-eq"):
        return Membership("in" if op == "eq" else "not-in", column, zeros)
    constant = _constant(type_, value)
    if value == 0:
        # Whoever orders the zeros has the negative one below: both must be on the same side.
        constant = zeros[1] if op in ("lt", "gt-eq") else zeros[0]
    compared = Comparison(op, column, constant)
    if op in ("gt", "gt-eq"):
        return Or(Unary("is-nan", column), compared)
    return compared


def _constant(type_: Type, value: Any) -> Constant:
    return Constant(write_value(type_, value), type_)
