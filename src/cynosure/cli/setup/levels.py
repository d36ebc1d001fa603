"""How a setup file names namespaces, and what is in them."""

from cynosure.cli.names import split_name

Levels = str | list[str]
"""A namespace: `a.b`, or its levels one by one where one of them holds a dot."""


def levels_of(name: Levels) -> tuple[str, ...]:
    """The levels of a name."""
    return split_name(name) if isinstance(name, str) else tuple(name)
