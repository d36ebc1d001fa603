"""What SELECT DISTINCT can be sorted by: what it gives, and nothing else, as Spark has it.

A maintainer must not break: a name is refused only where it is certain that Spark refuses it, too.
"""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from cynosure.query.errors import SqlError
from cynosure.query.sql.bind_names import QUERY
from cynosure.query.sql.outputs import is_window, path_of
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.scope import Scope

_SORTED: Final = ("order", "sort", "cluster", "distribute")


def check_distinct(select: exp.Select, scope: Scope) -> None:
    """`SqlError` for a name in ORDER BY that is no column of this SELECT DISTINCT. Its names are bound."""
    for part in _SORTED:
        clause = select.args.get(part)
        for node, path in _names_in(clause) if clause is not None else ():
            names = [each.name for each in path]
            if scope.is_open or scope.given.may_have(names[0]) or is_window(names, node):
                continue
            if names[-1].lower() in scope.merged:
                # Which side's column the key of a join is depends on the kind of the join.
                continue
            if not scope.given.has(names[0]) and not scope.given.has_column(scope.find_column(names)):
                raise SqlError(
                    "SELECT DISTINCT is sorted by what it does not give",
                    fix="Sort by a name or the position of one of its columns, or use GROUP BY.",
                    name=".".join(names),
                    **place_of_node(node),
                )


def _names_in(clause: exp.Expr) -> Iterator[tuple[exp.Expr, list[exp.Identifier]]]:
    """Names of a clause, without those of subqueries."""
    pending = [clause]
    while pending:
        node = pending.pop()
        if isinstance(node, (*QUERY, exp.Lambda)):
            continue
        path = path_of(node) if isinstance(node, exp.Column | exp.Dot) else None
        if path:
            yield node, path
            continue
        pending.extend(node.iter_expressions())
