"""Names into field ids, constants into exact values.

A maintainer must not break: a filter that cannot be understood exactly is refused, naming the column.
Guessing would return rows that were not asked for, or hide some that were.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NoReturn

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundExpression,
    BoundMembership,
    BoundReference,
    BoundTerm,
    BoundTermComparison,
    BoundTransform,
    BoundUnary,
)
from cynosure.iceberg.expressions.convert import Beyond, convert
from cynosure.iceberg.expressions.encode import FLIPPED
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    ICEBERG_FUNCTIONS,
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
from cynosure.iceberg.transforms import IDENTITY, can_apply
from cynosure.iceberg.types import (
    DATE,
    INT,
    MAX_INT,
    STRING,
    NestedField,
    StructType,
    Type,
    can_promote,
    is_floating,
    is_orderable,
)

_PLAIN: Final = frozenset({IDENTITY, "year", "month", "day", "hour"})
_WITH_WIDTH: Final = frozenset({"bucket", "truncate"})
_RESULTS: Final[dict[str, Type]] = {"year": INT, "month": INT, "day": DATE, "hour": INT, "bucket": INT}
"""Types of what a transform makes, where it is not the type it was given."""

_HOLDS_ABOVE: Final = frozenset({"lt", "lt-eq"})
_HOLDS_BELOW: Final = frozenset({"gt", "gt-eq"})


def bind(
    expression: Expression,
    schema: StructType,
    *,
    is_case_sensitive: bool = True,
    are_times_numbers: bool = False,
    field: str = "filter",
) -> BoundExpression:
    """The filter on the columns of a schema. `field` is the filter's name in errors.

    `are_times_numbers`: constants of dates and times may be plain numbers, as Iceberg's Java client sends
    them. Not for filters that people write: there, a number beside a date is a mistake.
    """
    binder = _Binder(schema, field, is_case_sensitive, are_times_numbers)
    return fold(expression, binder.expand)


class _Binder:
    def __init__(
        self, schema: StructType, field: str, is_case_sensitive: bool, are_times_numbers: bool
    ) -> None:
        self._schema = schema
        self._field = field
        self._is_case_sensitive = is_case_sensitive
        self._are_times_numbers = are_times_numbers
        self._found: dict[str | int, BoundReference] = {}

    def expand(self, node: Expression) -> tuple[Sequence[Expression], Join[BoundExpression]]:
        match node:
            case And(left, right):
                return (left, right), lambda parts: And(parts[0], parts[1])
            case Or(left, right):
                return (left, right), lambda parts: Or(parts[0], parts[1])
            case Not(child):
                return (child,), lambda parts: Not(parts[0])
            case Always():
                return (), lambda _: node
            case Unary():
                bound = self._bind_test(node)
            case Comparison():
                bound = self._bind_comparison(node)
            case Membership():
                bound = self._bind_membership(node)
        return (), lambda _: bound

    # Predicates.

    def _bind_test(self, node: Unary) -> BoundExpression:
        term = self._bind_term(node.child)
        if node.op in ("is-nan", "not-nan") and not is_floating(term.type):
            self._refuse("Only floating-point columns can be NaN", term, "Test a float or double column.")
        return BoundUnary(node.op, term)

    def _bind_comparison(self, node: Comparison) -> BoundExpression:
        op, left, right = node.op, node.left, node.right
        if isinstance(left, Constant) and not isinstance(right, Constant):
            if op not in FLIPPED:
                raise BadInput(
                    "A prefix is tested on a column",
                    field=self._field,
                    fix="Put the column on the left and the prefix on the right.",
                )
            left, right, op = right, left, FLIPPED[op]  # type: ignore[assignment]
        term = self._bind_term(left)
        self._check_comparable(term, is_prefix=op in ("starts-with", "not-starts-with"))
        if not isinstance(right, Constant):
            return self._bind_terms(node, term, self._bind_term(right))
        value = self._convert(right, term)
        if not isinstance(value, Beyond):
            return BoundComparison(op, term, value)
        if op in (_HOLDS_ABOVE if value is Beyond.ABOVE else _HOLDS_BELOW):
            return BoundUnary("not-null", term)
        return TRUE if op == "not-eq" else FALSE

    def _bind_terms(self, node: Comparison, left: BoundTerm, right: BoundTerm) -> BoundExpression:
        self._check_comparable(right, is_prefix=node.op in ("starts-with", "not-starts-with"))
        if not (can_promote(left.type, right.type) or can_promote(right.type, left.type)):
            self._refuse("Columns of different types cannot be compared", left, "Compare equal types.")
        return BoundTermComparison(node.op, left, right)

    def _bind_membership(self, node: Membership) -> BoundExpression:
        term = self._bind_term(node.child)
        self._check_comparable(term, is_prefix=False)
        converted = [self._convert(one, term) for one in node.values]
        # Each once; but the zeros are two, which some engines tell apart.
        values = {(value, str(value)) if value == 0 else value: value for value in converted}.values()
        within = tuple(value for value in values if not isinstance(value, Beyond))
        if not within:
            return FALSE if node.op == "in" else TRUE
        return BoundMembership(node.op, term, within)

    def _check_comparable(self, term: BoundTerm, *, is_prefix: bool) -> None:
        if is_prefix and term.type != STRING:
            self._refuse("Only text has a prefix", term, "Use a string column.")
        if not is_orderable(term.type):
            self._refuse("The column's type cannot be compared", term, "Test it with is-null or not-null.")

    def _convert(self, constant: Constant, term: BoundTerm) -> Any:
        try:
            return convert(constant, term.type, field=self._field, are_times_numbers=self._are_times_numbers)
        except BadInput as error:
            # Said again with the column: whoever wrote the filter knows that name, not the type.
            raise BadInput(
                "The constant is not a value of the column's type",
                field=self._field,
                fix=error.fix,
                column=term.name,
                type=str(term.type),
            ) from error

    # Terms.

    def _bind_term(self, value: Value) -> BoundTerm:
        if isinstance(value, NamedReference | IdReference):
            return self._find(value)
        if isinstance(value, Apply):
            return self._bind_transform(value)
        raise BadInput(
            "A predicate without a column", field=self._field, fix="Compare a column with a constant."
        )

    def _bind_transform(self, call: Apply) -> BoundTerm:
        # A name without a catalog would be a function of the table's own catalog. This one has none, so a
        # name of Iceberg's own functions can only mean that.
        function = call.function
        is_ours = function.catalog in (None, ICEBERG_FUNCTIONS) and len(function.identifier) == 1
        name = function.identifier[-1]
        match call.arguments:
            case (NamedReference() | IdReference() as column,) if is_ours and name in _PLAIN:
                text, parameter = name, None
            case (Constant(int(width)), NamedReference() | IdReference() as column) if (
                is_ours and name in _WITH_WIDTH and 0 < width <= MAX_INT and width is not True
            ):
                text, parameter = f"{name}[{width}]", width
            case _:
                raise BadInput(
                    "The function cannot be used in a filter here",
                    field=self._field,
                    fix="Use a partition transform of a column.",
                    function=".".join(function.identifier)[:200],
                )
        source = self._find(column)
        if not can_apply(text, source.type):
            self._refuse("The transform does not take this type", source, "Use another transform.")
        if name == IDENTITY:
            return source
        return BoundTransform(name, parameter, source, _RESULTS.get(name, source.type))

    def _find(self, reference: NamedReference | IdReference) -> BoundReference:
        key = reference.name if isinstance(reference, NamedReference) else reference.id
        found = self._found.get(key)
        if found is not None:
            return found
        if isinstance(key, str):
            wanted = key if self._is_case_sensitive else key.lower()
            matches = list(self._walk_named(self._schema.fields, wanted, "", is_required=True))
        else:
            matches = [one for one in _walk(self._schema.fields, "", is_required=True) if one.id == key]
        if len(matches) != 1:
            raise BadInput(
                "More than one column has this name" if matches else "No such column",
                field=self._field,
                fix="Name a column of the table that is not inside a list or map, as the schema spells it.",
                column=key,
            )
        self._found[key] = matches[0]
        return matches[0]

    def _walk_named(
        self, fields: tuple[NestedField, ...], wanted: str, prefix: str, *, is_required: bool
    ) -> Iterator[BoundReference]:
        # Names may hold dots themselves, so a path is matched against names, not split.
        for field in fields:
            name = field.name if self._is_case_sensitive else field.name.lower()
            if not wanted.startswith(name):
                continue
            path, is_always_there = prefix + field.name, is_required and field.is_required
            if len(wanted) == len(name):
                yield BoundReference(field.id, path, field.type, is_always_there)
            elif wanted[len(name)] == "." and isinstance(field.type, StructType):
                rest = wanted[len(name) + 1 :]
                yield from self._walk_named(field.type.fields, rest, path + ".", is_required=is_always_there)

    def _refuse(self, message: str, term: BoundTerm, fix: str) -> NoReturn:
        raise BadInput(message, field=self._field, fix=fix, column=term.name, type=str(term.type)[:200])


def _walk(fields: tuple[NestedField, ...], prefix: str, *, is_required: bool) -> Iterator[BoundReference]:
    for field in fields:
        path, is_always_there = prefix + field.name, is_required and field.is_required
        yield BoundReference(field.id, path, field.type, is_always_there)
        if isinstance(field.type, StructType):
            yield from _walk(field.type.fields, path + ".", is_required=is_always_there)
