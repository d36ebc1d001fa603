"""What changed between two states: entry by entry, reading only the parts they do not share."""

from collections.abc import AsyncIterator

from msgspec import Struct

from cynosure.persistence.commit.view import State
from cynosure.persistence.index import diff


class Difference(Struct, frozen=True):
    """One index entry that differs. `None` means absent on that side."""

    index: str
    key: bytes
    before: bytes | None
    after: bytes | None


async def compare(before: State, after: State) -> AsyncIterator[Difference]:
    """Differences in order of index name and key."""
    names = sorted({*before.commit.record.indexes, *after.commit.record.indexes})
    for name in names:
        entries = diff(before.nodes, before.commit.index(name), after.commit.index(name))
        async for key, old, new in entries:
            yield Difference(name, key, old, new)
