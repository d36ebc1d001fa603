"""Which tables a query names, outside of the names that it gives itself.

    WITH t AS (SELECT * FROM t) SELECT * FROM t     one mention: the inner one

A maintainer must not break: a name is that of a common table expression only where Spark sees it: in the
query that it belongs to and everything inside, and in the expressions behind it. All other names are tables.
"""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from cynosure.query.engine import SessionValues
from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.sql.bound import TableMention, TimeTravel
from cynosure.query.sql.moments import read_moment
from cynosure.query.sql.places import place_of_node

MENTION: Final = "cynosure-mention"
"""Mark of a node: its `TableMention`."""

_Known = tuple[tuple[dict[str, int], int], ...]
"""For each WITH around a node: its names, at which place each stands first, and the place up to which the
node sees them."""

_PATHS: Final = frozenset(
    {"parquet", "orc", "avro", "csv", "json", "text", "delta", "iceberg", "binaryfile", "xml", "file", "jdbc"}
)


def mentions_of(
    tree: exp.Expr, first_number: int = 0, session: SessionValues | None = None
) -> tuple[TableMention, ...]:
    """All mentions in the order of the text's nodes, numbered from `first_number`; marks their nodes.

    Without a session, `TIMESTAMP AS OF` is refused: times are in a zone, and relative to the statement's.
    """
    found: list[TableMention] = []
    for node in tables_of(tree):
        mention = _read_mention(node, first_number + len(found), session)
        node.meta[MENTION] = mention
        found.append(mention)
    return tuple(found)


def tables_of(tree: exp.Expr) -> Iterator[exp.Table]:
    """Tables that are none of the query's own names, without recursion."""
    pending: list[tuple[exp.Expr, _Known]] = [(tree, ())]
    while pending:
        node, known = pending.pop()
        with_ = node.args.get("with_")
        if with_ is not None:
            places: dict[str, int] = {}
            for at, each in enumerate(with_.expressions):
                pending.append((each.this, (*known, (places, at))))
                places.setdefault(each.alias.lower(), at)
            known = (*known, (places, len(with_.expressions)))
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier | exp.Dot):
            is_single = len(_parts(node)) == 1 and not node.args.get("version")
            if not is_single or not _is_known(node.name.lower(), known):
                yield node
        for child in node.iter_expressions(reverse=True):
            if child is not with_:
                pending.append((child, known))


def _is_known(name: str, known: _Known) -> bool:
    return any(places.get(name, end) < end for places, end in known)


def _parts(node: exp.Table) -> tuple[str, ...]:
    names: list[str] = []
    for part in (node.args.get("catalog"), node.args.get("db"), node.this):
        if isinstance(part, exp.Dot):
            names += [each.name for each in part.flatten()]
        elif part is not None:
            names.append(part.name)
    return tuple(names)


def _read_mention(node: exp.Table, number: int, session: SessionValues | None) -> TableMention:
    """What a node of a table says; `SqlError` for paths of files and times that are not understood."""
    parts = _parts(node)
    first = node.args.get("catalog") or node.args.get("db") or node.this
    place = place_of_node(first)
    if parts[0].lower() in _PATHS and (len(parts) == 2 and any(sign in parts[1] for sign in "/:\\*")):
        raise SqlError("Files cannot be read by their path", fix="Name a table of the catalog.", **place)
    if any("/" in part or "\\" in part for part in parts):
        raise SqlError("Files cannot be read by their path", fix="Name a table of the catalog.", **place)
    travel = _read_travel(node.args.get("version"), session)
    return TableMention(number, parts, travel, line=place.get("line", 0), column=place.get("column", 0))


def _read_travel(version: exp.Expr | None, session: SessionValues | None) -> TimeTravel | None:
    if version is None:
        return None
    value = version.expression
    if str(version.this).upper() == "TIMESTAMP":
        if session is None:
            raise NotAllowed(
                "A time of a table is not allowed here",
                fix="Name the table without TIMESTAMP AS OF.",
                **place_of_node(version),
            )
        return TimeTravel(timestamp_us=read_moment(value, session))
    if isinstance(value, exp.Literal) and value.is_string:
        return TimeTravel(version=value.name)
    if isinstance(value, exp.Literal) and value.name.isdecimal() and len(value.name) <= 19:
        return TimeTravel(version=int(value.name))
    raise SqlError(
        "A version is a snapshot's id, or the name of a branch or tag in quotes",
        fix="Write VERSION AS OF 'main', or VERSION AS OF 4358109269898732143.",
        **place_of_node(version),
    )
