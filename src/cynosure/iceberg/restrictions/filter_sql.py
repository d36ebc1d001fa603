"""A row filter written as a condition in Spark SQL.

The parser is sqlglot's; what it understood is read node by node. It is imported when the first filter is
read, because it is large and most servers never need it.

A maintainer must not break: a node is read only if all of its parts are known here. Parsers put what changes
the meaning into parts (`negate` of LIKE), and a part that is overlooked is a filter that shows other rows.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from cynosure.common.errors import BadInput, TooLarge
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
from cynosure.iceberg.types import DATE, TIMESTAMP, TIMESTAMPTZ, DecimalType

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

MAX_CHARACTERS: Final = 20_000
_MAX_PARENTHESES: Final = 20
"""One inside the other: the parser recurses, and must never run out of stack on what was accepted once."""
_MAX_CALLS: Final = 2
"""One inside the other, as in `array_contains(current_roles(), 'r')`. The parser tries what could be a type
several ways, each of which doubles its work with every call inside another."""
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
    return fold(_parse(text, field), _Reader(field).expand)


def _parse(text: str, field: str) -> "Node":
    if len(text) > MAX_CHARACTERS:
        raise TooLarge(
            "The filter is too long", field=field, fix="Use one IN for many values.", limit=MAX_CHARACTERS
        )
    import sqlglot  # noqa: PLC0415 - large

    # It logs what it stumbles over, and that is somebody's filter.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    from sqlglot.errors import ParseError, SqlglotError  # noqa: PLC0415
    from sqlglot.expressions import Condition, Expr  # noqa: PLC0415

    try:
        _check_nesting(sqlglot.tokenize(text, dialect="spark"), field)
        parsed: object = sqlglot.parse_one(text, dialect="spark", into=Condition)
    except ParseError as error:
        where = {"line": each["line"], "column": each["col"]} if (each := _first(error.errors)) else {}
        raise BadInput(_NO_SQL, field=field, fix=_SEND_CONDITION, **where) from error
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Text that nobody thought of: a parser that stumbles has not understood it.
        raise BadInput(_NO_SQL, field=field, fix=_SEND_CONDITION) from error
    except RecursionError as error:
        raise TooLarge("The filter is nested too deeply", field=field, fix="Nest less.") from error
    if not isinstance(parsed, Expr):
        raise BadInput(_NO_SQL, field=field, fix=_SEND_CONDITION)
    return parsed


_NO_SQL: Final = "The filter is not a condition in SQL"
_SEND_CONDITION: Final = "Send a condition as it would stand behind WHERE in Spark SQL."


def _first(errors: Sequence[Any]) -> Any:
    return errors[0] if errors else None


_GROUPING: Final = frozenset(
    {
        "",
        "L_PAREN",
        "COMMA",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "EQ",
        "NEQ",
        "LT",
        "LTE",
        "GT",
        "GTE",
    }
)
"""Behind one of these a parenthesis only groups; behind anything else it is a call or a type."""
_NESTING_TYPES: Final = frozenset(
    {"ARRAY", "LIST", "MAP", "STRUCT", "NESTED", "NULLABLE", "OBJECT", "RANGE", "UNION", "LOWCARDINALITY"}
)


def _check_nesting(tokens: Sequence[Any], field: str) -> None:
    """Refuse what would keep the parser busy for longer than its length tells."""
    open_: list[bool] = []  # for each parenthesis, whether it is that of a call
    before = ""
    for token in tokens:
        kind = token.token_type.name
        if kind == "L_PAREN":
            open_.append(before not in _GROUPING)
        elif kind == "R_PAREN" and open_:
            open_.pop()
        if len(open_) > _MAX_PARENTHESES or sum(open_) > _MAX_CALLS:
            raise TooLarge(
                "The filter is nested too deeply", field=field, fix="Nest less.", limit=_MAX_PARENTHESES
            )
        if kind in ("L_BRACKET", "L_BRACE") or (kind == "LT" and before in _NESTING_TYPES):
            raise BadInput(
                "Lists, maps and structs are not understood",
                field=field,
                fix="Compare simple columns; a name that is also a type stands in backticks.",
            )
        if kind == before and kind in ("NOT", "DASH"):
            raise BadInput("A sign stands twice", field=field, fix="Leave both out.", sign=kind.lower())
        before = kind


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
        self._refuse(node, "Use comparisons, IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR and NOT.")

    def _read_in(self, node: "Node") -> Expression:
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


def _function_name(node: "Node") -> str:
    return str(node.args.get("this", ""))[:100].lower() if node.key == "anonymous" else ""
