"""A row filter written as a condition in Spark SQL.

What the parser understood (`sql_text.py`) is read node by node.

A maintainer must not break: a node is read only if all of its parts are known here. Parsers put what changes
the meaning into parts (`negate` of LIKE), and a part that is overlooked is a filter that shows other rows.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    TRUE,
    And,
    Apply,
    CompareOp,
    Comparison,
    Constant,
    Expression,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
    Value,
)
from cynosure.iceberg.restrictions.language import CURRENT_USER, is_member
from cynosure.iceberg.restrictions.mapping import Mapped, in_mapping
from cynosure.iceberg.restrictions.sql_text import parse_text
from cynosure.iceberg.types import DATE, TIMESTAMP, TIMESTAMPTZ, DecimalType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

_MAX_DIGITS: Final = 38

_COMPARISONS: Final[dict[str, CompareOp]] = {
    "eq": "eq",
    "neq": "not-eq",
    "lt": "lt",
    "lte": "lt-eq",
    "gt": "gt",
    "gte": "gt-eq",
}
_TIMES: Final = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"})
_NUMBER = re.compile(r"(\d+)(?:\.(\d*))?", re.ASCII)
_SCIENTIFIC = re.compile(r"\d+(?:\.\d*)?[eE][+-]?\d{1,3}", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)

Expansion = tuple[Sequence["Node"], Join[Expression]]


def parse_sql(text: str, *, field: str) -> Expression:
    """The filter that a condition in SQL stands for; `BadInput` for what is not understood."""
    return fold(parse_text(text, field), _Reader(field).expand)


class _Reader:
    """Reads nodes of the parser. `expand` reads conditions, the rest what is inside them."""

    def __init__(self, field: str) -> None:
        self._field = field

    def expand(self, node: "Node") -> Expansion:
        key = node.key
        if key in ("and", "or"):
            left, right = self._parts(node, "this", "expression")
            join: Callable[..., Expression] = And if key == "and" else Or
            return (left, right), lambda parts: join(parts[0], parts[1])
        if key == "not":
            (child,) = self._parts(node, "this")
            return (child,), lambda parts: Not(parts[0])
        if key == "paren":
            (child,) = self._parts(node, "this")
            return (child,), lambda parts: parts[0]
        leaf = self._read_leaf(node)
        return (), lambda _: leaf

    def _read_leaf(self, node: "Node") -> Expression:
        if node.key in _COMPARISONS:
            left, right = self._parts(node, "this", "expression")
            return Comparison(_COMPARISONS[node.key], self._value(left), self._value(right))
        match node.key:
            case "in":
                return self._read_in(node)
            case "between":
                tested, low, high = self._parts(node, "this", "low", "high")
                column = self._column(tested)
                return And(
                    Comparison("gt-eq", column, self._value(low)),
                    Comparison("lt-eq", column, self._value(high)),
                )
            case "is":
                tested, null = self._parts(node, "this", "expression")
                if null.key != "null":
                    self._refuse(null, "Write IS NULL or IS NOT NULL.")
                return Unary("is-null", self._column(tested))
            case "like":
                return self._read_like(node)
            case "startswith":
                tested, prefix = self._parts(node, "this", "expression")
                return Comparison("starts-with", self._column(tested), Constant(self._text(prefix)))
            case "boolean":
                return TRUE if node.args["this"] else FALSE
            case "anonymous" | "arraycontains":
                return self._read_role(node)
            case "column" | "dot":
                return Comparison("eq", self._column(node), Constant(value=True))
            case "exists":
                (query,) = self._parts(node, "this")
                return _MappingReader(self._field, query).read_exists()
        self._refuse(node, "Use comparisons, IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR and NOT.")

    def _read_in(self, node: "Node") -> Expression:
        if node.args.get("query") is not None:
            tested, nested = self._parts(node, "this", "query")
            (query,) = self._parts(nested, "this")
            return _MappingReader(self._field, query).read_in(self._column(tested))
        (tested,) = self._parts(node, "this", but=("expressions",))
        values: list[Node] = node.args.get("expressions") or []
        if not values:
            self._refuse(node, "Name at least one value.")
        column = self._value(tested)
        read = [self._value(each) for each in values]
        constants = tuple(each for each in read if isinstance(each, Constant))
        found: Expression = Membership("in", column, constants) if constants else FALSE
        for each in read:
            if not isinstance(each, Constant):
                equal = Comparison("eq", column, each)
                found = equal if found is FALSE else Or(found, equal)
        return found

    def _read_like(self, node: "Node") -> Expression:
        is_negated = bool(node.args.get("negate"))
        tested, pattern = self._parts(node, "this", "expression", but=("negate",))
        text = self._text(pattern)
        prefix = text.removesuffix("%")
        if prefix == text or not prefix or any(sign in prefix for sign in "%_\\"):
            self._refuse(pattern, "Only a prefix can be matched: LIKE 'prefix%'. For equality use =.")
        found = Comparison("starts-with", self._column(tested), Constant(prefix))
        return Not(found) if is_negated else found

    def _read_role(self, node: "Node") -> Expression:
        if node.key == "arraycontains":
            roles, name = self._parts(node, "this", "expression")
            if _function_name(roles) == "current_roles" and not roles.args.get("expressions"):
                return is_member(self._text(name))
        elif _function_name(node) == "is_member":
            self._parts(node, but=("this", "expressions"))
            arguments: list[Node] = node.args.get("expressions") or []
            if len(arguments) == 1:
                return is_member(self._text(arguments[0]))
        self._refuse(node, "The functions are current_user() and is_member('role').")

    # Values.

    def _value(self, node: "Node") -> Value:
        match node.key:
            case "literal":
                return self._literal(node, sign="")
            case "neg":
                (number,) = self._parts(node, "this")
                if number.key != "literal" or number.args["is_string"]:
                    self._refuse(node, "Compare a column with a constant.")
                return self._literal(number, sign="-")
            case "boolean":
                return Constant(bool(node.args["this"]))
            case "cast" | "trycast":
                return self._read_time(node)
            case "currentuser":
                self._parts(node)
                return CURRENT_USER
            case "null":
                self._refuse(node, "Nothing equals NULL: write IS NULL.")
            case "paren":
                (inner,) = self._parts(node, "this")
                return self._value(inner)
        return self._column(node)

    def _column(self, node: "Node") -> NamedReference | Apply:
        names: list[str] = []
        while node.key == "dot":
            node, last = self._parts(node, "this", "expression")
            names.append(self._name(last))
        if node.key == "currentuser" and not names:
            return CURRENT_USER
        if node.key != "column":
            self._refuse(node, "Name a column, with dots for the fields of structs.")
        parts = [node.args.get(part) for part in ("this", "table", "db", "catalog")]
        self._parts(node, "this", but=("table", "db", "catalog"))
        names += [self._name(part) for part in parts if part is not None]
        return NamedReference(".".join(reversed(names)))

    def _name(self, node: "Node") -> str:
        if node.key != "identifier":
            self._refuse(node, "Name a column, with dots for the fields of structs.")
        return str(node.args["this"])

    def _literal(self, node: "Node", *, sign: str) -> Constant:
        text = str(node.args["this"])
        if node.args["is_string"]:
            return Constant(text)
        if _SCIENTIFIC.fullmatch(text):
            return Constant(float(sign + text))
        match = _NUMBER.fullmatch(text)
        if match is None or len(text) > _MAX_DIGITS:
            self._refuse(node, "Write numbers in digits, 38 at most.")
        if match[2] is None:
            return Constant(int(sign + text))
        digits = max(len((match[1] + match[2]).lstrip("0")), len(match[2]), 1)
        return Constant(f"{sign}{match[1]}.{match[2] or '0'}", DecimalType(digits, len(match[2])))

    def _text(self, node: "Node") -> str:
        if node.key != "literal" or not node.args["is_string"]:
            self._refuse(node, "Write a text in single quotes; a quote inside it as \\'.")
        return str(node.args["this"])

    def _read_time(self, node: "Node") -> Constant:
        inner, to = self._parts(node, "this", "to", but=("safe", "_type"))
        kind = getattr(to.args.get("this"), "name", "")
        if inner.key == "literal" and inner.args["is_string"]:
            text = str(inner.args["this"])
            if kind == "DATE":
                return Constant(text, DATE)
            match = _TIMESTAMP.fullmatch(text) if kind in _TIMES else None
            if match is not None:
                zone = match[3] or ""
                value = f"{match[1]}T{match[2] or '00:00:00'}{zone}"
                return Constant(value, TIMESTAMPTZ if zone else TIMESTAMP)
        self._refuse(
            node, "Casts are not understood; write DATE '2026-01-31' or TIMESTAMP '2026-01-31 10:00:00Z'."
        )

    # Nodes.

    def _parts(self, node: "Node", *names: str, but: Sequence[str] = ()) -> tuple["Node", ...]:
        """Parts of a node, which has no others."""
        for name, part in node.args.items():
            if name not in names and name not in but and part not in (None, False, []):
                self._refuse(node, "Say it in another way.", part=name)
        parts = tuple(node.args.get(name) for name in names)
        if any(part is None for part in parts):
            self._refuse(node, "Say it in another way.")
        return parts  # type: ignore[return-value]

    def _refuse(self, node: "Node", fix: str, **details: Any) -> NoReturn:
        # The kind and the place, never the text: constants of a filter are somebody's data.
        where = next((each.meta["start"] + 1 for each in node.walk() if "start" in each.meta), None)
        raise BadInput(
            "A part of the filter is not understood",
            field=self._field,
            fix=fix,
            found=_function_name(node) or node.key,
            **({} if where is None else {"at_character": where}),
            **details,
        )


class _MappingReader(_Reader):
    """Reads `SELECT value FROM namespace.table WHERE filter`, in which names are those of the mapping table.

    In SQL a name without the table's before it may also be a column of the outer table. Here it is one only
    beside a column of the mapping table that has it, in the one equality of EXISTS.
    """

    def __init__(self, field: str, query: "Node") -> None:
        super().__init__(field)
        if query.key != "select":
            self._refuse(query, _ONE_SELECT)
        (source,) = self._parts(query, "from_", but=("expressions", "where"))
        shown: list[Node] = query.args.get("expressions") or []
        if len(shown) != 1:
            self._refuse(query, "Select one column of the mapping table.")
        self._shown = shown[0]
        where: Node | None = query.args.get("where")
        self._where = None if where is None else self._parts(where, "this")[0]
        (table,) = self._parts(source, "this")
        self._table, self._known_as = self._read_table(table)

    def read_in(self, column: NamedReference | Apply) -> Expression:
        """The predicate that the column is among the values."""
        if not isinstance(column, NamedReference):
            self._refuse(self._shown, "Look up a column; compare current_user() inside the subquery.")
        if self._shown.key not in ("column", "dot"):
            self._refuse(self._shown, "Select one column of the mapping table.")
        value = self._mapping_column(self._shown)
        kept = TRUE if self._where is None else fold(self._where, self.expand)
        return in_mapping(Mapped(column, self._table, value.name, kept))

    def read_exists(self) -> Expression:
        """The same, of the one column of the mapping table that a column outside is equal to."""
        if self._shown.key not in ("literal", "star"):
            self._refuse(self._shown, "Write EXISTS (SELECT 1 FROM …).")
        equal: list[tuple[NamedReference, NamedReference]] = []
        kept: Expression = TRUE
        pending = [] if self._where is None else [self._where]
        while pending:
            node = pending.pop()
            if node.key == "and":
                pending += reversed(self._parts(node, "this", "expression"))
            elif node.key == "paren":
                pending += self._parts(node, "this")
            elif (pair := self._find_pair(node)) is not None:
                equal.append(pair)
            else:
                part = fold(node, self.expand)
                kept = part if kept is TRUE else And(kept, part)
        if len(equal) != 1:
            self._refuse(self._shown, _ONE_EQUALITY, equalities=len(equal))
        ((value, column),) = equal
        return in_mapping(Mapped(column, self._table, value.name, kept))

    def _read_table(self, table: "Node") -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Its name, and the names that its columns may have before them."""
        if table.key != "table":
            self._refuse(table, _ONE_SELECT)
        (named,) = self._parts(table, "this", but=("db", "catalog", "alias"))
        last: list[str] = []
        while named.key == "dot":
            named, after = self._parts(named, "this", "expression")
            last.insert(0, self._name(after))
        before = [each for part in ("catalog", "db") if (each := table.args.get(part)) is not None]
        path = (*map(self._name, before), self._name(named), *last)
        if len(path) == 1:
            self._refuse(table, "Name the mapping table with its whole namespace.")
        alias: Node | None = table.args.get("alias")
        if alias is None:
            return path, tuple(path[at:] for at in range(len(path)))
        (name,) = self._parts(alias, "this")
        return path, ((self._name(name),),)

    def _find_pair(self, node: "Node") -> tuple[NamedReference, NamedReference] | None:
        """The column of the mapping table and that outside, of an equality of two columns."""
        if node.key != "eq":
            return None
        sides = self._parts(node, "this", "expression")
        if any(each.key not in ("column", "dot") for each in sides):
            return None
        own = [self._strip(super(_MappingReader, self)._column(each)) for each in sides]
        if (own[0] is None) == (own[1] is None):
            self._refuse(node, _ONE_EQUALITY)
        at = 0 if own[0] is not None else 1
        value, outer = own[at], super()._column(sides[1 - at])
        assert isinstance(value, NamedReference)  # noqa: S101 - that was looked at
        assert isinstance(outer, NamedReference)  # noqa: S101 - what a column is read as
        return value, outer

    def _column(self, node: "Node") -> NamedReference | Apply:
        column = super()._column(node)
        return self._strip(column) or column

    def _mapping_column(self, node: "Node") -> NamedReference:
        column = self._column(node)
        assert isinstance(column, NamedReference)  # noqa: S101 - what a column is read as
        return column

    def _strip(self, column: NamedReference | Apply) -> NamedReference | None:
        """A column without the table's name before it; `None` when it has none."""
        if isinstance(column, NamedReference):
            for names in self._known_as:
                prefix = ".".join(names).lower() + "."
                if column.name.lower().startswith(prefix):
                    return NamedReference(column.name[len(prefix) :])
        return None


_ONE_SELECT: Final = "Select one column of one table; without joins, nested queries, WITH, GROUP BY or LIMIT."
_ONE_EQUALITY: Final = (
    "Join exactly one column of the mapping table, with the table's name or alias before it, "
    "to one outside by =: m.region = region."
)


def _function_name(node: "Node") -> str:
    return str(node.args.get("this", ""))[:100].lower() if node.key == "anonymous" else ""
