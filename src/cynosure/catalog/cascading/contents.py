"""What is below a namespace, or in a whole catalog, in one state.

Must not break: namespaces come after all that is in them.
"""

import asyncio
from collections.abc import AsyncIterator
from enum import Enum
from typing import Final, NamedTuple

from cynosure.catalog.names import (
    Identifier,
    Namespace,
    children_prefix,
    generics_prefix,
    last_name,
    policies_prefix,
    tables_prefix,
    views_prefix,
)
from cynosure.persistence.commit import State
from cynosure.persistence.index import after

_CHUNK: Final = 1_000


class Kind(Enum):
    """What a namespace can hold."""

    TABLE = "table"
    GENERIC_TABLE = "generic table"
    VIEW = "view"
    POLICY = "policy"
    NAMESPACE = "namespace"


_PREFIXES: Final = {
    Kind.TABLE: tables_prefix,
    Kind.GENERIC_TABLE: generics_prefix,
    Kind.VIEW: views_prefix,
    Kind.POLICY: policies_prefix,
}


class Thing(NamedTuple):
    """One of them."""

    kind: Kind
    name: Identifier
    """Of a namespace: the one it is in, and its last level."""

    @property
    def path(self) -> tuple[str, ...]:
        """All levels."""
        return (*self.name.namespace, self.name.name)

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


async def walk_contents(state: State, root: Namespace, *kinds: Kind) -> AsyncIterator[Thing]:
    """All below `root` of these kinds; without levels, of the catalog. The root itself is not among them."""
    async for child in _names(state, children_prefix(root)):
        async for thing in walk_contents(state, (*root, child), *kinds):
            yield thing
        if Kind.NAMESPACE in kinds:
            yield Thing(Kind.NAMESPACE, Identifier(root, child))
    if not root:
        return
    for kind, prefix_of in _PREFIXES.items():
        if kind in kinds:
            async for name in _names(state, prefix_of(root)):
                yield Thing(kind, Identifier(root, name))


async def _names(state: State, prefix: bytes) -> AsyncIterator[str]:
    start = b""
    while True:
        entries = await state.scan("names", prefix=prefix, start=start, limit=_CHUNK)
        for key, _ in entries:
            yield last_name(key)
        if len(entries) < _CHUNK:
            return
        start = after(entries[-1][0])
        await asyncio.sleep(0)  # A namespace of a million must not hold up everyone else.
