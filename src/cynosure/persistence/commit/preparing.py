"""Working out a request's changes on a state: the first of the two phases of a commit.

Must not break: what `prepare` is told goes through a `Tracked` view, and its objects are encoded here, in
parallel with others, so that the commit phase has little left to do.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput
from cynosure.persistence import metrics
from cynosure.persistence.commit.build import CommitLimits
from cynosure.persistence.commit.entry import Base, Counters, Entry
from cynosure.persistence.commit.recent_keys import KeyFinder
from cynosure.persistence.commit.records import Holds
from cynosure.persistence.commit.request import AlreadyCommitted, Committed
from cynosure.persistence.commit.view import State, Tracked, View
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store


class Preparer:
    """Prepares the requests of one committer."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: CommitLimits,
        counters: Counters,
        indexes: Mapping[str, Holds],
    ) -> None:
        self._store = store
        self._backend = store.backend
        self._clock = clock
        self._limits = limits
        self._counters = counters
        self._indexes = indexes
        self._keys = KeyFinder(store)

    async def prepare(self, entry: Entry, view: View, prepared_on: ObjId | None, base: Base) -> None:
        """Run the request's own `prepare`. `prepared_on` is `None` when the view is a draft."""
        entry.attempts += 1
        if entry.attempts > 1:
            self._counters.prepared_again += 1
            metrics.PREPARED_AGAIN.inc()
        entry.prepared = None
        tracked = Tracked(view)
        prepared = await entry.request.prepare(tracked)
        _check_indexes(prepared.changes, self._indexes)
        objects = [self._store.encode(new) for new in prepared.objects]
        if objects and not self._backend.limits.swap_carries_rows:
            await self._backend.write([row for each in objects for row in each.rows])
        entry.base, entry.prepared, entry.prepared_on = base, prepared, prepared_on
        entry.reads, entry.objects = tracked.reads, objects

    async def prepare_on(self, entry: Entry, base: Base) -> Committed[Any] | AlreadyCommitted | None:
        """Prepare on a committed state. An outcome when there is nothing to commit."""
        for key_hash in entry.request.keys:
            if (found := await self.find_key(key_hash, base.state)) is not None:
                return AlreadyCommitted(found, key_hash)
        await self.prepare(entry, base.state, base.state.commit_id, base)
        assert entry.prepared is not None  # noqa: S101 - _prepare sets it or raises
        if entry.is_change:
            return None
        return Committed(entry.prepared.result, base.state.commit_id, base.state.commit.record.sequence)

    async def find_key(self, key_hash: str, state: State, *, absent_in: State | None = None) -> ObjId | None:
        """The commit that has this idempotency key already, if any; `absent_in`: an earlier state has not."""
        since_us = self._clock.now_us() - int(self._limits.key_lifetime_s * 1_000_000)
        absent = absent_in.commit if absent_in else None
        return await self._keys.find(state.commit, key_hash, since_us=since_us, absent_in=absent)


def _check_indexes(changed: Iterable[str], known: Mapping[str, Holds]) -> None:
    # Found out here, a wrong name is its own request's trouble; when building, it would be the group's.
    for name in changed:
        if name not in known:
            raise BadInput("No such index", field="changes", fix=f"Use one of {sorted(known)}.", index=name)
