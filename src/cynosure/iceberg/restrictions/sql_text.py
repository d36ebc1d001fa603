"""The text of a filter in SQL as nodes of the parser, which is sqlglot's.

It is imported when the first filter is read, because it is large and most servers never need it.

A maintainer must not break: what would keep the parser busy for longer than the length of the text tells is
refused before it parses.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cynosure.common.errors import BadInput, TooLarge

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

MAX_CHARACTERS: Final = 20_000
_MAX_PARENTHESES: Final = 20
"""One inside the other: the parser recurses, and must never run out of stack on what was accepted once."""
_MAX_CALLS: Final = 2
"""One inside the other, as in `array_contains(current_roles(), 'r')`. The parser tries what could be a type
several ways, each of which doubles its work with every call inside another."""


def parse_text(text: str, field: str) -> "Node":
    """The condition that the text is; `BadInput` for what the parser does not understand."""
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
        "EXISTS",
        "WHERE",
    }
)
"""Behind one of these a parenthesis only groups; behind anything else it is a call or a type."""
_NESTING_TYPES: Final = frozenset(
    {"ARRAY", "LIST", "MAP", "STRUCT", "NESTED", "NULLABLE", "OBJECT", "RANGE", "UNION", "LOWCARDINALITY"}
)


def _check_nesting(tokens: Sequence[Any], field: str) -> None:
    """Refuse what would keep the parser busy for longer than its length tells."""
    if sum(token.token_type.name == "SELECT" for token in tokens) > 1:
        raise BadInput(
            "A filter asks one mapping table at most",
            field=field,
            fix="Write one policy for each mapping table.",
        )
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
