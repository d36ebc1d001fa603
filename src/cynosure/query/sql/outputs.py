"""Columns that queries and relations give, and names as the tree writes them.

A maintainer must not break: renaming by position (`AS t(a, b)`) needs all columns of what is renamed.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from cynosure.query.errors import SqlError
from cynosure.query.sql.functions import CASTS, GENERATORS
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.scope import Out, Scope, Source

_WINDOWS: Final = ("window", "window_time", "session_window")
_GENERATORS: Final = frozenset(each.replace("_", "") for each in GENERATORS)


class Outputs:
    """Columns of a query."""

    def __init__(self, columns: Sequence[Out], *, is_open: bool = False) -> None:
        self.columns = list(columns)
        self.is_open = is_open
        """Some have names that only the engine knows."""
        self.pushed: frozenset[int] = frozenset()
        """Mentions whose rows are this query's rows one by one: see `Source.pushed`."""
        self.qualifiers: frozenset[tuple[str, ...]] = frozenset()
        """What Spark lets its columns be called with above it, too: `SELECT t.id … UNION … ORDER BY t.id`."""


def ask_all(outs: Outputs) -> None:
    """All columns that are supported are needed."""
    for out in outs.columns:
        if out.is_supported:
            out.ask()


def rename(outs: Outputs, alias: exp.Expr | None) -> Outputs:
    """Columns under the names of an alias, if that has any."""
    columns = alias.args.get("columns") if alias is not None else None
    if not columns:
        return outs
    ask_all(outs)
    known = [out for out in outs.columns if out.is_supported]
    if not outs.is_open and len(known) != len(columns):
        raise SqlError(
            "The number of names is not that of the columns",
            fix=f"Name {len(known)} columns.",
            **place_of_node(alias) if alias is not None else {},
        )
    if outs.is_open:
        return Outputs([Out(each.name) for each in columns])
    return renamed_to([each.name for each in columns], outs)


def renamed_to(names: Sequence[str], outs: Outputs) -> Outputs:
    """The same columns by other names, in order."""
    known = [out for out in outs.columns if out.is_supported]
    columns = [
        Out(name, mention=out.mention, field=out.field) for name, out in zip(names, known, strict=True)
    ]
    made = Outputs(columns)
    made.pushed = outs.pushed
    return made


def as_source(outs: Outputs, alias: exp.Expr | None, *, name: str = "") -> Source:
    """A relation with these columns; `name` is what it is called without an alias."""
    renamed = rename(outs, alias)
    called = alias.name if alias is not None and alias.name else name
    source = Source([(called,)] if called else [], renamed.columns, is_open=renamed.is_open)
    source.pushed = renamed.pushed
    return source


def columns_of_values(node: exp.Expr) -> list[Out]:
    """`col1`, `col2` … of VALUES; a row is a tuple, or one value."""
    first = node.expressions[0] if node.expressions else None
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return [Out(f"col{at + 1}") for at in range(width)]


def names_of_item(item: exp.Expr) -> list[str] | None:
    """Names of what an item of SELECT gives; None when only the engine knows them."""
    match item:
        case exp.Alias():
            return [str(item.alias)]
        case exp.Aliases():
            return [each.name for each in item.expressions]
        case exp.Column() | exp.Dot():
            path = path_of(item)
            return [path[-1].name] if path else None
    return None


def path_of(node: exp.Expr) -> list[exp.Identifier] | None:
    """The identifiers of `a.b.c`; None if it begins with something else, as in `f(x).b`."""
    behind: list[exp.Identifier] = []
    while isinstance(node, exp.Dot):
        behind.append(node.expression)
        node = node.this
    if not isinstance(node, exp.Column):
        return None
    parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
    return [*parts, *reversed(behind)]


def is_field(item: exp.Expr, origin: Out | None, scope: Scope) -> bool:
    """Whether an item without AS is a field of a struct, which Spark gives a name of its own."""
    path = path_of(item) if isinstance(item, exp.Column | exp.Dot) else None
    return path is not None and len(path) > 1 and origin is None and not scope.is_open


def name_of_cast(item: exp.Expr, scope: Scope) -> str:
    """The name of a column (no field) that is only cast: Spark gives it to the result. Else empty."""
    inner = item.this if isinstance(item, exp.Cast) else None
    if isinstance(item, exp.Anonymous) and len(item.expressions) == 1 and item.name.lower() in CASTS:
        inner = item.expressions[0]
    path = path_of(inner) if isinstance(inner, exp.Column) else None
    if not path:
        return ""
    names = [each.name for each in path]
    return names[-1] if len(names) == 1 or scope.find_column(names) is not None else ""


def is_generator(item: exp.Expr) -> bool:
    """Whether an item gives columns that only the engine knows: `explode(x)`."""
    name = item.this if isinstance(item, exp.Anonymous) else type(item).__name__.strip("_")
    return str(name).replace("_", "").lower() in _GENERATORS


def requalify(node: exp.Expr, path: list[exp.Identifier], qualifier_length: int, alias: str) -> None:
    """Write `catalog.namespace.table.column.field` as `alias.column.field`."""
    rest = path[qualifier_length:]
    made: exp.Expr = exp.Column(this=rest[0].copy(), table=exp.Identifier(this=alias, quoted=True))
    for field in rest[1:]:
        made = exp.Dot(this=made, expression=field.copy())
    node.replace(made)


def is_window(parts: Sequence[str], node: exp.Expr) -> bool:
    """`window.start`, where the query has a column that `window(…)` makes without a name."""
    if parts[0].lower() not in _WINDOWS:
        return False
    select = node.find_ancestor(exp.Select)
    return select is not None and any(
        str(call.this).lower() in _WINDOWS for call in select.find_all(exp.Anonymous)
    )


_CUTS: Final = ("limit", "offset", "order", "sort", "cluster", "distribute")


def is_cut(node: exp.Expr) -> bool:
    """Whether a row is left depends on which others there are, or on their order."""
    return any(node.args.get(part) is not None for part in _CUTS)


def is_plain(node: exp.Select) -> bool:
    """Whether a query gives a row for each row it reads, whatever the others are: conditions can pass it."""
    if is_cut(node) or any(node.args.get(part) is not None for part in ("distinct", "group", "having")):
        return False
    allowed = (exp.Column, exp.Star, exp.Alias)
    items = [each.this if isinstance(each, exp.Alias) else each for each in node.expressions]
    return all(isinstance(each, allowed) for each in items)


def has_positions(node: exp.Select) -> bool:
    """Whether ORDER BY or GROUP BY count columns: all of a `*` matter then."""
    for part in ("order", "sort", "group"):
        each = node.args.get(part)
        if each is None:
            continue
        if each.args.get("all"):
            return True
        for one in each.expressions:
            inner = one.this if isinstance(one, exp.Ordered) else one
            if isinstance(inner, exp.Literal | exp.Var):
                return True
    return False
