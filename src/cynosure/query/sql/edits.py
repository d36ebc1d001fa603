"""Many nodes of a tree replaced at once.

sqlglot counts the neighbours of a node anew for each one that is replaced: of a list of 10,000 values that is
half a minute.

A maintainer must not break: work in proportion to the size of the tree.
"""

from collections.abc import Sequence

from sqlglot import exp


def replace_all(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> None:
    """Put the second of each pair where the first is. None of the first is the root, or inside another."""
    by_list: dict[tuple[int, str], tuple[exp.Expr, dict[int, exp.Expr]]] = {}
    for old, new in pairs:
        parent, key = old.parent, old.arg_key
        if parent is None or key is None:
            continue
        if isinstance(parent.args.get(key), list):
            by_list.setdefault((id(parent), key), (parent, {}))[1][id(old)] = new
        else:
            old.replace(new)
    for (_, key), (parent, news) in by_list.items():
        parent.set(key, [news.get(id(each), each) for each in parent.args[key]])
