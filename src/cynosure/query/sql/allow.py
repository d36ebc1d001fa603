"""Whether a parsed query has only what is known: nodes, their parts, functions, types.

A maintainer must not break: this is a list of what is allowed. What it does not name is refused, with the
place in the statement and without any constant of it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from sqlglot import exp

from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.sql.functions import ALLOWED, TABLE_FUNCTIONS, UNIT_FIRST, UNITS
from cynosure.query.sql.nodes import PARTS, TYPES
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.refused_functions import suggest_instead
from cynosure.query.sql.tokens import MAX_CHAIN, SUBSTITUTION_FIX

MAX_DEPTH: Final = 120
"""Of the tree, chains of operators not counted: engines recurse too."""
MAX_JOINS: Final = 100
"""Behind one FROM."""

MAX_WITH: Final = 1_000
"""Common table expressions of one WITH."""

RESERVED_NAME: Final = re.compile(r"cyn_\d+", re.IGNORECASE | re.ASCII)
"""What engines know relations by."""

_NUMBER: Final = re.compile(r"(\d{1,100}(\.\d{0,100})?|\.\d{1,100})([eE][+-]?\d{1,3})?", re.ASCII)
_HEX: Final = re.compile(r"([0-9a-fA-F]{2})*", re.ASCII)

_QUERIES: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)

_WORDS: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("Join", "kind"): frozenset({"CROSS", "INNER", "OUTER", "SEMI", "ANTI"}),
    ("Join", "side"): frozenset({"LEFT", "RIGHT", "FULL"}),
    ("Join", "method"): frozenset({"NATURAL"}),
    ("WindowSpec", "kind"): frozenset({"ROWS", "RANGE"}),
    ("WindowSpec", "start"): frozenset({"UNBOUNDED", "CURRENT ROW"}),
    ("WindowSpec", "end"): frozenset({"UNBOUNDED", "CURRENT ROW"}),
    ("WindowSpec", "start_side"): frozenset({"PRECEDING", "FOLLOWING"}),
    ("WindowSpec", "end_side"): frozenset({"PRECEDING", "FOLLOWING"}),
    ("Window", "over"): frozenset({"OVER"}),
    ("Trim", "position"): frozenset({"BOTH", "LEADING", "TRAILING"}),
    ("Version", "this"): frozenset({"VERSION", "TIMESTAMP"}),
    ("Version", "kind"): frozenset({"AS OF"}),
    ("Var", "this"): frozenset(
        {"ALL", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"}
        | {"MICROSECOND", "YEARS", "QUARTERS", "MONTHS", "WEEKS", "DAYS", "HOURS", "MINUTES", "SECONDS"}
        | {"MILLISECONDS", "MICROSECONDS", "DOW", "DOY", "DAYOFWEEK", "DAYOFYEAR", "DAYOFWEEK_ISO"}
        | {"YEAROFWEEK", "Y", "YR", "YRS", "QTR", "MON", "MONS", "W", "D", "H", "HRS", "M", "MIN", "MINS"}
        | {"S", "SEC", "SECS", "EPOCH"}
    ),
    ("Pivot", "pivot_column_naming"): frozenset({"AGG_NAME_IF_MULTIPLE"}),
}
"""Words that are kept as text in nodes, and nothing else is."""

_STATEMENTS: Final[Mapping[str, str]] = {
    "Insert": "INSERT",
    "Update": "UPDATE",
    "Delete": "DELETE",
    "Merge": "MERGE",
    "Create": "CREATE",
    "Drop": "DROP",
    "Alter": "ALTER",
    "Set": "SET",
    "Use": "USE",
    "Cache": "CACHE",
    "Uncache": "UNCACHE",
    "Refresh": "REFRESH",
    "TruncateTable": "TRUNCATE",
    "LoadData": "LOAD DATA",
    "Declare": "DECLARE",
    "Execute": "EXECUTE",
    "Command": "This command",
}
_REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "Qualify": (
        "QUALIFY is not part of Spark SQL",
        "Put the window function into a subquery, and filter above it.",
    ),
    "TableSample": ("TABLESAMPLE is not allowed", "Use LIMIT."),
    "Placeholder": ("A parameter has no value", "Send a value for it."),
    "Parameter": ("Variables are not allowed", "Use a parameter: :name or ?."),
    "SessionParameter": ("Variables are not allowed", "Use a parameter: :name or ?."),
    "Collate": ("COLLATE is not allowed", "Use lower() to compare without regard to case."),
    "JSONExtract": ("-> outside of a function is not understood", "Use get_json_object()."),
    "Fetch": ("FETCH is not part of Spark SQL", "Use LIMIT."),
    "Kwarg": ("Arguments by name are not allowed", "Write them in order."),
    "PropertyEQ": ("Arguments by name are not allowed", "Write them in order."),
}


def check_query(tree: exp.Expr) -> None:
    """`NotAllowed` or `SqlError` unless a tree is a query of known parts only."""
    if not isinstance(tree, _QUERIES):
        name = _STATEMENTS.get(type(tree).__name__, "This statement")
        raise NotAllowed(
            f"{name} is not allowed", fix="Send a SELECT, SHOW, DESCRIBE or EXPLAIN.", **place_of_node(tree)
        )
    _check_depth(tree)
    for node in tree.walk():
        check_node(node)


def check_node(node: exp.Expr) -> None:
    """`NotAllowed` unless this node, without those below it, is known with all of its parts."""
    name = type(node).__name__
    parts = PARTS.get(name)
    if parts is None:
        _refuse_node(node, name)
    for part, value in node.args.items():
        if value is None or value is False or value == []:
            continue
        if part not in parts:
            _refuse_part(node, name, part)
        if isinstance(value, str):
            _check_word(node, name, part, value)
    _check_special(node, name)


def _check_word(node: exp.Expr, name: str, part: str, value: str) -> None:
    words = _WORDS.get((name, part))
    if words is not None:
        if value.upper() not in words:
            _refuse_part(node, name, part)
    elif name == "Literal" and part == "this":
        if node.args.get("is_string") and "${" in value:
            raise SqlError(
                "Substitutions are not allowed, in texts neither",
                fix=SUBSTITUTION_FIX,
                **place_of_node(node),
            )
        if any("\ud800" <= sign <= "\udfff" or sign == "\x00" for sign in value):
            raise SqlError("A text has a character that is none", fix="Leave it out.", **place_of_node(node))
        if not node.args.get("is_string") and not _NUMBER.fullmatch(value):
            raise SqlError("A number is not understood", fix="Write it in digits.", **place_of_node(node))
    elif name == "HexString" and part == "this":
        if not _HEX.fullmatch(value):
            raise SqlError("A binary text is not understood", fix="Write X'1F'.", **place_of_node(node))
    elif not (name in ("Identifier", "Anonymous") and part == "this"):
        _refuse_part(node, name, part)


def _check_special(node: exp.Expr, name: str) -> None:
    check = _SPECIAL.get(name)
    if check is not None:
        check(node)


def _check_identifier(node: exp.Expr) -> None:
    if not node.name or "${" in node.name:
        raise SqlError("A name is empty or not understood", fix="Name it.", **place_of_node(node))


def _check_quantifier(node: exp.Expr) -> None:
    is_pattern = isinstance(node.parent, exp.Like | exp.ILike) and isinstance(
        node.this, exp.Tuple | exp.Paren
    )
    if not is_pattern or node.find(*_QUERIES):
        raise NotAllowed(
            "ANY and ALL are not allowed with subqueries",
            fix="Use IN, EXISTS, bool_or(), or max() and min() in a subquery.",
            **place_of_node(node),
        )


def _check_dot(node: exp.Expr) -> None:
    if not isinstance(node.args.get("expression"), exp.Identifier):
        raise NotAllowed("Functions are named without a namespace", fix="Write f(x).", **place_of_node(node))


def _check_lateral(node: exp.Expr) -> None:
    is_view = bool(node.args.get("view"))
    if is_view and node.arg_key != "laterals":
        raise SqlError("LATERAL VIEW stands behind FROM", fix="Leave the comma out.", **place_of_node(node))
    if not is_view and node.arg_key == "laterals":
        raise SqlError("LATERAL is joined", fix="Write a comma or JOIN before it.", **place_of_node(node))


def _check_select(node: exp.Expr) -> None:
    if not node.expressions:
        raise SqlError("SELECT gives no column", fix="Name one, or *.", **place_of_node(node))
    _check_joins(node)


def _check_group(node: exp.Expr) -> None:
    if not any(node.args.values()):
        raise SqlError("GROUP BY names nothing", fix="Name a column.", **place_of_node(node))


def _check_alias(node: exp.Expr) -> None:
    if not isinstance(node.args.get("alias"), exp.Identifier):
        raise SqlError("A name is not understood", fix="Write AS name.", **place_of_node(node))
    if isinstance(node.this, exp.Star) or (
        isinstance(node.this, exp.Column) and isinstance(node.this.this, exp.Star)
    ):
        raise SqlError("* has no name", fix="Leave AS out.", **place_of_node(node))


def _check_reserved(node: exp.Expr) -> None:
    # A mention without an alias is written with its table's name, so those of relations cannot be taken.
    name = node.alias if isinstance(node, exp.CTE) else node.name
    if RESERVED_NAME.fullmatch(name):
        raise SqlError("The name is reserved", fix="Take another one.", name=name, **place_of_node(node))


def _check_joins(node: exp.Expr) -> None:
    joins: list[exp.Expr] = node.args.get("joins") or []
    if len(joins) > MAX_JOINS:
        raise SqlError(
            "There are too many joins", fix="Use subqueries.", limit=MAX_JOINS, **place_of_node(node)
        )


def _check_with(node: exp.Expr) -> None:
    if len(node.expressions) > MAX_WITH:
        raise SqlError(
            "There are too many common table expressions",
            fix="Use fewer.",
            limit=MAX_WITH,
            **place_of_node(node),
        )


def _check_table(node: exp.Expr) -> None:
    _check_joins(node)
    this = node.this
    if isinstance(this, exp.Identifier | exp.Dot):
        return
    if isinstance(this, exp.Anonymous):
        known = this.name.lower() in TABLE_FUNCTIONS
    else:
        known = type(this).__name__ in ("Explode", "_ExplodeOuter", "Posexplode", "PosexplodeOuter", "Inline")
    if not known:
        raise NotAllowed(
            "This is no table that can be read",
            fix="Name a table or view; functions that are tables: "
            + ", ".join(sorted(TABLE_FUNCTIONS))
            + ".",
            **place_of_node(node),
        )


def _check_call(node: exp.Expr) -> None:
    name = node.args.get("this")
    if not isinstance(name, str):
        raise NotAllowed("Functions are named without backticks", fix="Write f(x).", **place_of_node(node))
    lowered = name.lower()
    is_table = isinstance(node.parent, exp.Table) and node.arg_key == "this"
    if lowered not in (TABLE_FUNCTIONS if is_table else ALLOWED):
        raise NotAllowed(
            "The function is not known or not allowed",
            fix=suggest_instead(lowered),
            function=name[:100],
            **place_of_node(node),
        )
    if lowered in UNIT_FIRST and len(node.expressions) == 3:
        unit = node.expressions[0]
        if not isinstance(unit, exp.Var) or unit.name.lower() not in UNITS:
            raise SqlError("A unit of time is missing", fix=f"Write {name}(DAY, …).", **place_of_node(node))


def _check_type(node: exp.Expr) -> None:
    this = node.this
    if isinstance(this, exp.Interval):
        return
    if this not in TYPES and this is not exp.DType.INTERVAL:
        raise NotAllowed(
            "Values cannot be cast to this type",
            fix="Use a type of Spark SQL: STRING, INT, BIGINT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP …",
            type=str(getattr(this, "name", "")),
            **place_of_node(node),
        )


_SPECIAL: Final[Mapping[str, Callable[[exp.Expr], None]]] = {
    "Alias": _check_alias,
    "All": _check_quantifier,
    "Anonymous": _check_call,
    "Any": _check_quantifier,
    "CTE": _check_reserved,
    "DataType": _check_type,
    "Dot": _check_dot,
    "Group": _check_group,
    "Identifier": _check_identifier,
    "Lateral": _check_lateral,
    "Select": _check_select,
    "Subquery": _check_joins,
    "Table": _check_table,
    "TableAlias": _check_reserved,
    "With": _check_with,
}


def _check_depth(tree: exp.Expr) -> None:
    """Walks without recursion; left sides of operators do not count as nesting."""
    pending = [(tree, 0, 0)]
    while pending:
        node, depth, chain = pending.pop()
        if depth > MAX_DEPTH or chain > MAX_CHAIN:
            raise SqlError(
                "The statement is nested too deeply",
                fix="Nest less; name parts of it with WITH, or use IN for many values.",
                **place_of_node(node),
            )
        is_operator = isinstance(node, exp.Binary | exp.SetOperation)
        for child in node.iter_expressions():
            is_left = is_operator and child.arg_key == "this"
            pending.append((child, depth + (not is_left), chain + 1))


def _refuse_node(node: exp.Expr, name: str) -> NoReturn:
    if name in _STATEMENTS:
        raise NotAllowed(
            f"{_STATEMENTS[name]} is not allowed",
            fix="Send a SELECT, SHOW, DESCRIBE or EXPLAIN.",
            **place_of_node(node),
        )
    message, fix = _REASONS.get(name, ("A part of the statement is not understood", "Say it in another way."))
    raise NotAllowed(message, fix=fix, found=name.strip("_"), **place_of_node(node))


_PARTS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("With", "recursive"): ("Recursive queries are not allowed", "Say it without RECURSIVE."),
    ("Select", "qualify"): _REASONS["Qualify"],
    ("Select", "into"): ("SELECT INTO is not allowed", "Leave INTO out."),
    ("Select", "locks"): ("FOR UPDATE is not allowed", "Leave it out."),
    ("Select", "sample"): _REASONS["TableSample"],
    ("Table", "sample"): _REASONS["TableSample"],
    ("Subquery", "sample"): _REASONS["TableSample"],
    ("Select", "connect"): ("CONNECT BY is not part of Spark SQL", "Use joins."),
    ("Select", "match"): ("MATCH_RECOGNIZE is not part of Spark SQL", "Use lag() and lead()."),
    ("Join", "method"): ("This kind of join is not part of Spark SQL", "Write JOIN … ON."),
    ("Star", "replace"): (
        "* REPLACE is not part of Spark SQL",
        "Write * EXCEPT (a), and the new a behind it.",
    ),
    ("Star", "rename"): ("* RENAME is not part of Spark SQL", "Write * EXCEPT (a), and a AS b behind it."),
    ("Star", "ilike"): ("* ILIKE is not part of Spark SQL", "Name the columns, or use * EXCEPT (a)."),
    ("Distinct", "on"): ("DISTINCT ON is not part of Spark SQL", "Use row_number() in a subquery."),
}


def _refuse_part(node: exp.Expr, name: str, part: str) -> NoReturn:
    message, fix = _PARTS.get(
        (name, part), ("A part of the statement is not understood", "Say it in another way.")
    )
    raise NotAllowed(message, fix=fix, found=f"{name.strip('_')}.{part.strip('_')}", **place_of_node(node))
