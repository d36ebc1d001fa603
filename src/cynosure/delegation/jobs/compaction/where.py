"""The condition and the order of a compaction: columns and values, and nothing else that SQL can say.

Spark resolves the text as the service's principal, who may see more than whoever ordered it, and computes
calls of functions right away. So neither a query nor a call gets there: what other tables are called and
have in them would be told by errors, and one call is enough to fill the driver's memory.

A maintainer must not break: what is not known here is refused. A column whose name is a word of SQL can be
written in backticks.
"""

import re
from typing import Final

from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.instructions import Instructions

_WHERE: Final = "where"
_SORT: Final = "sort_order"
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)
    | (?P<text> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<quoted> `(?:[^`]|``)+` )
    | (?P<number> \d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:BD|[LSYFD])?(?!\w) )
    | (?P<word> [^\W\d]\w* )
    | (?P<sign> <=>|<=|>=|<>|!=|==|[=<>(),.+]|-(?!-) )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BEFORE_BRACKET: Final = frozenset({"and", "or", "not", "in", "between", "like", "is"})
"""Words that may stand before a bracket; others there are calls."""
_REFUSED: Final = frozenset(
    {
        *("select", "from", "table", "values", "with", "exists", "lateral", "map", "reduce", "transform"),
        *("case", "cast", "rlike", "regexp", "ilike", "similar", "escape", "all", "any", "some"),
    }
)


def find_where(given: Instructions) -> str | None:
    """The condition of an order; `BadInput` when it is more than one."""
    text = given.find(_WHERE)
    if text is None:
        return None
    at, before, can_open = 0, "", True
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise _refused(text[at : at + 20])
        kind, part, at = token.lastgroup, token.group().lower(), token.end()
        if kind == "space":
            continue
        # In a raw text (r'…') a backslash means nothing: it would end elsewhere than it does here.
        is_raw = kind == "text" and before == "r"
        if is_raw or part in _REFUSED or (part == "(" and not can_open):
            raise _refused(f"{before} {part}".strip())
        before = part
        can_open = part in _BEFORE_BRACKET or (kind == "sign" and part not in (")", "."))
    return text


def find_sort_order(given: Instructions) -> str | None:
    """What an order sorts by: columns, transforms, `zorder(a, b)`; `BadInput` when it is more."""
    text = given.find(_SORT)
    at = 0
    while text is not None and at < len(text):
        token = _TOKEN.match(text, at)
        is_sign = token is not None and token.lastgroup == "sign" and token.group() not in "(),."
        if token is None or token.lastgroup == "text" or is_sign:
            raise BadInput(
                "A sort order is more than columns",
                field=f"operation_parameters.properties.{_SORT}",
                fix="Use columns with ASC or DESC and NULLS FIRST or LAST, or zorder(a, b).",
                value=text[at : at + 20],
            )
        at = token.end()
    return text


def _refused(part: str) -> BadInput:
    return BadInput(
        "A condition is more than columns that are compared with values",
        field=f"operation_parameters.properties.{_WHERE}",
        fix="Use columns, values, =, <>, <, <=, >, >=, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT, brackets.",
        value=part[:100],
    )
