"""The ids of commits in the order they were made.

A commit names those before it and not those after it, so going forward means having gone back first. What was
found is kept, eight bytes a commit: a reader who is far behind costs one walk, not one per page.

Must not break: a kept id is used only if the current chain still holds it. After a disaster reset the chain
is another one.
"""

from array import array

from cynosure.persistence.commit.entry import Base
from cynosure.persistence.commit.records import COMMIT, NO_COMMIT
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store

MAX_KEPT = 1_000_000


class Chain:
    """The commits of one reference, as far as they were asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first = 1
        """Sequence number of the first id."""
        self._ids = array("q")

    async def extend(self, base: Base, since: int) -> None:
        """Know all commits from sequence number `since` up to the head of `base`, or as many as are left."""
        if since < self._first:
            self._first, self._ids = 1, array("q")
        record = base.state.commit.record
        if base.ref.head == NO_COMMIT:
            self._first, self._ids = 1, array("q")
            return
        newest = record.sequence
        back = [base.ref.head]
        met = self._meeting(newest, back, 0)
        while met is None and newest - len(back) >= max(since, 1) and record.parents:
            looked_at = len(back)
            back += record.parents
            met = self._meeting(newest, back, looked_at)
            if met is not None:
                # Nothing is awaited between finding the place and using it: others extend the same chain.
                break
            older = await self._store.find(COMMIT, record.parents[-1])
            if older is None:
                break
            record = older.record
        if met is None:
            self._first, self._ids = newest - len(back) + 1, array("q", reversed(back))
        else:
            del self._ids[newest - met - self._first + 1 :]
            self._ids.extend(reversed(back[:met]))
        if (excess := len(self._ids) - MAX_KEPT) > 0:
            del self._ids[:excess]
            self._first += excess

    def slice(self, since: int, limit: int) -> list[ObjId]:
        """Up to `limit` ids from sequence number `since` on. Empty when they are not known."""
        start = since - self._first
        return [ObjId(id_) for id_ in self._ids[start : start + limit]] if start >= 0 else []

    @property
    def oldest(self) -> int:
        """Sequence number of the oldest commit that is known."""
        return self._first

    def find(self, sequence: int) -> ObjId | None:
        """The commit of this sequence number, if it is known."""
        at = sequence - self._first
        return ObjId(self._ids[at]) if 0 <= at < len(self._ids) else None

    def _meeting(self, newest: int, back: list[ObjId], start: int) -> int | None:
        """The place in `back` from which on everything is known already."""
        for at in range(start, len(back)):
            if self.find(newest - at) == back[at]:
                return at
        return None
