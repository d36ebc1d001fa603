"""Which columns a join gives to `*`, in Spark's order.

    a JOIN b USING (k)              k, the others of a, the others of b;  b.* begins with its own k
    … JOIN c USING (m)              m, k, the others

A maintainer must not break: names of results are told by this order. Another one is values under wrong names.
"""

from collections.abc import Sequence

from sqlglot import exp

from cynosure.query.sql.scope import Scope, Shown


def show_joined(
    join: exp.Expr, scope: Scope, sides: tuple[list[Shown], list[Shown]], keys: Sequence[str]
) -> None:
    """Put what both sides of a join give into the scope. `keys`: names of USING or of a NATURAL join."""
    side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
    left, right = sides
    left_keys, right_keys = _find(keys, left), _find(keys, right)
    all_keys = {*left_keys, *right_keys}
    left = [each for each in left if each not in all_keys]
    right = [each for each in right if each not in all_keys]
    if kind in ("SEMI", "ANTI"):
        scope.shown = [*left_keys, *left]
    elif side == "RIGHT":
        scope.shown = [*right_keys, *left, *right]
        scope.covered = [*left_keys, *scope.covered]
    elif side == "FULL":
        scope.shown = [*(Shown(each.out, None) for each in left_keys), *left, *right]
        scope.covered = [*left_keys, *right_keys, *scope.covered]
    else:
        scope.shown = [*left_keys, *left, *right]
        scope.covered = [*right_keys, *scope.covered]


def _find(names: Sequence[str], shown: list[Shown]) -> list[Shown]:
    """The column of each name. None where only the engine knows the columns."""
    first: dict[str, Shown] = {}
    for each in shown if names else ():
        first.setdefault(each.out.name.lower(), each)
    return [first[name] for name in names if name in first]
