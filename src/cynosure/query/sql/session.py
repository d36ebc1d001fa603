"""What functions about the session say, as literals: the same in every engine and for every mention.

A maintainer must not break: engines run as somebody else, on another machine. None of these functions gets to
them.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from sqlglot import exp

from cynosure.query.engine import SessionValues
from cynosure.query.errors import SqlError
from cynosure.query.sql.edits import replace_all
from cynosure.query.sql.functions import SESSION_FUNCTIONS
from cynosure.query.sql.places import place_of_node

_NODES: Final[dict[type[exp.Expr], str]] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
}
_WITHOUT_PARENTHESES: Final = frozenset(
    {"current_date", "current_timestamp", "current_user", "session_user", "user", "localtimestamp"}
)


def is_session_name(name: str) -> bool:
    """Whether Spark takes a name that is no column for a function."""
    return name.lower() in _WITHOUT_PARENTHESES


def put_session(tree: exp.Expr, session: SessionValues) -> None:
    """Replace all of them in a tree, in place."""
    found: list[tuple[exp.Expr, exp.Expr]] = []
    for node in tree.walk():
        name = _NODES.get(type(node), "")
        if isinstance(node, exp.Anonymous) and isinstance(node.this, str):
            name = node.this.lower() if node.this.lower() in SESSION_FUNCTIONS | {"unix_timestamp"} else ""
            if name == "unix_timestamp" and node.expressions:
                continue
            if name and node.expressions:
                raise SqlError("The function has no arguments", fix=f"Write {name}().", **place_of_node(node))
        if not name:
            continue
        literal = _literal(name, session)
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            # A column of the result is called as the function, not as its value.
            literal = exp.Alias(this=literal, alias=exp.Identifier(this=f"{name}()", quoted=True))
        found.append((node, literal))
    replace_all(found)


def put_name(node: exp.Expr, name: str) -> None:
    """A name that is no column becomes the function that it stands for."""
    node.replace(exp.Anonymous(this=name.lower()))


def _literal(name: str, session: SessionValues) -> exp.Expr:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=session.now_us)
    match name:
        case "current_user" | "user" | "session_user":
            return _text(session.user)
        case "current_catalog":
            return _text(session.catalog)
        case "current_database" | "current_schema":
            return _text(session.namespace)
        case "current_timezone":
            return _text(session.time_zone)
        case "current_date" | "curdate":
            return _cast(moment.strftime("%Y-%m-%d"), exp.DType.DATE)
        case "localtimestamp":
            return _cast(moment.strftime("%Y-%m-%d %H:%M:%S.%f"), exp.DType.TIMESTAMPNTZ)
        case "unix_timestamp":
            return exp.TryCast(
                this=exp.Literal.number(session.now_us // 1_000_000), to=exp.DataType(this=exp.DType.BIGINT)
            )
    return _cast(moment.strftime("%Y-%m-%d %H:%M:%S.%f") + "Z", exp.DType.TIMESTAMPTZ)


def _text(value: str) -> exp.Expr:
    if "${" in value:
        raise SqlError("A name of the session is not understood", fix="Choose another catalog or namespace.")
    return exp.Literal.string(value)


def _cast(text: str, type_: exp.DType) -> exp.Expr:
    return exp.TryCast(this=exp.Literal.string(text), to=exp.DataType(this=type_))
