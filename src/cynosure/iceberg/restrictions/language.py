"""What a row filter may be made of, whether it was written in SQL or as an expression of the REST protocol.

    column  =  <>  <  <=  >  >=  starts-with  in  is-null  is-nan …  constants
    column  =  <>  current_user()           current_user()  =  <>  in  constants
    is_member('role')                       and, or, not
    column in a column of a mapping table, at most once and not below `not` (`mapping.py`)

The two functions are `Apply` nodes without a catalog; `resolving.py` puts values in their place.

A maintainer must not break: a filter that passed `canonical` has no other nodes, so that what walks over it
later has no other cases.
"""

from collections.abc import Sequence
from typing import Final, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.expressions.encode import FLIPPED
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
    Leaf,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.restrictions.mapping import Mapped, find_mapped, in_mapping

CURRENT_USER: Final = Apply(Function(("current_user",)), ())
_IS_MEMBER: Final = Function(("is_member",))

_NAMESPACE_AND_NAME: Final = 2
MAX_DEPTH: Final = 100
"""Far below where JSON of the filter would become too deep for a client."""
MAX_NODES: Final = 2_000
MAX_VALUES: Final = 10_000


class Mentioned(Struct, frozen=True):
    """The names in a filter."""

    columns: tuple[str, ...]
    roles: tuple[str, ...]


def is_member(role: str) -> Comparison:
    """The predicate that the reader has a role."""
    return Comparison("eq", Apply(_IS_MEMBER, (Constant(role),)), Constant(value=True))


def find_role(node: Expression) -> str | None:
    """The role that a leaf asks for, if it does."""
    match node:
        case Comparison("eq", Apply(function, (Constant(str(role)),)), Constant(True)) if (
            function == _IS_MEMBER
        ):
            return role
    return None


def canonical(expression: Expression, *, field: str) -> Expression:
    """The filter with columns on the left; `BadInput` for anything that is not of this language."""
    _check_size(expression, field)
    _check_mapped(expression, field)

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
        leaf = _read_leaf(node, field)
        return (), lambda _: leaf

    return fold(expression, expand)


def mentioned(expression: Expression) -> Mentioned:
    """The names in a canonical filter, each once, in order."""
    columns: dict[str, None] = {}
    roles: dict[str, None] = {}
    for node in leaves(expression):
        role = find_role(node)
        if role is not None:
            roles[role] = None
            continue
        mapped = find_mapped(node)
        if mapped is not None and isinstance(mapped.column, NamedReference):
            columns[mapped.column.name] = None
            roles |= dict.fromkeys(mentioned(mapped.filter).roles)
            continue
        match node:
            case Unary(_, NamedReference(name)) | Membership(_, NamedReference(name), _):
                columns[name] = None
            case Comparison(_, NamedReference(name), _):
                columns[name] = None
    return Mentioned(tuple(columns), tuple(roles))


def _read_leaf(node: Leaf, field: str) -> Expression:
    if find_role(node) is not None:
        return node
    mapped = find_mapped(node)
    if mapped is not None:
        return _read_mapped(mapped, field)
    match node:
        case Unary(_, NamedReference()):
            return node
        case Membership(_, NamedReference() | Apply() as tested, values) if _is_column_or_user(tested):
            if not values:
                _refuse("A set without values", field, "Name at least one value.")
            return node
        case Comparison(op, Constant() as left, right) if not isinstance(right, Constant):
            if op not in FLIPPED:
                _refuse("A prefix is tested on a column", field, "Put the column first.")
            node = Comparison(FLIPPED[op], right, left)  # type: ignore[arg-type]
        case Comparison("eq" | "not-eq" as op, Apply() as left, NamedReference() as right):
            node = Comparison(op, right, left)
    match node:
        case Comparison(_, NamedReference(), Constant()):
            return node
        case Comparison("eq" | "not-eq", NamedReference(), Apply() as user) if user == CURRENT_USER:
            return node
        case Comparison("eq" | "not-eq", Apply() as user, Constant(str())) if user == CURRENT_USER:
            return node
    _refuse(
        "A part of the filter is not understood",
        field,
        "Compare columns by name with constants or current_user(), or use is_member('role').",
    )


def _read_mapped(mapped: Mapped, field: str) -> Expression:
    if isinstance(mapped.column, IdReference) or len(mapped.table) < _NAMESPACE_AND_NAME:
        _refuse("A mapping names a column and a table", field, "Name the table with its whole namespace.")
    if find_all_mapped(mapped.filter):
        _refuse("A mapping table inside another one", field, "Ask one mapping table, directly.")
    return in_mapping(replace(mapped, filter=canonical(mapped.filter, field=field)))


def _check_mapped(expression: Expression, field: str) -> None:
    if len(find_all_mapped(expression)) > 1:
        _refuse("A filter asks one mapping table at most", field, "Write one policy for each mapping table.")
    pending = [(expression, False)]
    while pending:
        node, is_negated = pending.pop()
        match node:
            case And(left, right) | Or(left, right):
                pending += ((left, is_negated), (right, is_negated))
            case Not(child):
                pending.append((child, True))
            case _ if is_negated and find_mapped(node) is not None:
                _refuse(
                    "NOT IN and NOT EXISTS of a mapping table depend on NULLs and on what is not in it",
                    field,
                    "List in the mapping table what is shown, and write IN or EXISTS.",
                )


def find_all_mapped(expression: Expression) -> list[Mapped]:
    """What a filter asks of mapping tables, in order."""
    return [mapped for node in leaves(expression) if (mapped := find_mapped(node)) is not None]


def _is_column_or_user(tested: NamedReference | Apply) -> bool:
    return isinstance(tested, NamedReference) or tested == CURRENT_USER


def leaves(expression: Expression) -> list[Expression]:
    """The parts that are joined by `and`, `or` and `not`, in order."""
    found: list[Expression] = []
    pending = [expression]
    while pending:
        node = pending.pop()
        match node:
            case And(left, right) | Or(left, right):
                pending += (right, left)
            case Not(child):
                pending.append(child)
            case _:
                found.append(node)
    return found


def _check_size(expression: Expression, field: str) -> None:
    nodes = values = 0
    pending = [(expression, 1)]
    while pending:
        node, depth = pending.pop()
        nodes += 1
        match node:
            case And(left, right) | Or(left, right):
                pending += ((left, depth + 1), (right, depth + 1))
            case Not(child):
                pending.append((child, depth + 1))
            case Membership():
                values += len(node.values)
        if depth > MAX_DEPTH or nodes > MAX_NODES or values > MAX_VALUES:
            raise TooLarge(
                "The filter is too large",
                field=field,
                fix="Nest less, and use one IN for many values.",
                max_depth=MAX_DEPTH,
                max_parts=MAX_NODES,
                max_values=MAX_VALUES,
            )


def _refuse(message: str, field: str, fix: str) -> NoReturn:
    raise BadInput(message, field=field, fix=fix)
