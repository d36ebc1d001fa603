"""A statement without its constants: what is recorded of it.

A maintainer must not break: no literal, no text, no number, no comment comes through; names do.
"""

from sqlglot import exp

from cynosure.query.sql.dialect import WRITTEN
from cynosure.query.sql.edits import replace_all


def redact(tree: exp.Expr) -> str:
    """Its text in Spark's SQL with `?` for every constant."""
    copy = tree.copy()
    found: list[tuple[exp.Expr, exp.Expr]] = []
    for node in copy.walk():
        node.comments = None
        if isinstance(node, exp.Literal | exp.HexString) and not isinstance(node.parent, exp.DataTypeParam):
            found.append((node, exp.Placeholder()))
    replace_all(found)
    return str(copy.sql(dialect=WRITTEN))
