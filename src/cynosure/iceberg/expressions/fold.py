"""Walks over trees of any depth without recursion.

A maintainer must not break: children are joined in the order they were given.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

N = TypeVar("N")
R = TypeVar("R")

Join = Callable[[list[R]], R]
"""Makes a node's result from the results of its children, first child first."""


def fold(root: N, expand: Callable[[N], tuple[Sequence[N], Join[R]]]) -> R:
    """The result of a tree from the bottom up.

    `expand` gives a node's children and how to join their results; it sees every parent before its children.
    """
    order: list[tuple[int, Join[R]]] = []
    pending = [root]
    while pending:
        children, join = expand(pending.pop())
        order.append((len(children), join))
        pending.extend(children)

    # Read backwards, every node comes after its children, and they wait on the pile, the last one on top.
    done: list[R] = []
    for count, join in reversed(order):
        parts = done[len(done) - count :]
        del done[len(done) - count :]
        done.append(join(parts))
    return done[0]
