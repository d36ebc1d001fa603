"""Idempotency keys of recent commits, part of every reference's state.

The commit phase looks a request's key up on the very head it is about to replace, so one key can
never be committed twice, whatever was paused or taken over in between.

Where a key may be is in the state's log (`key_log.py`); that it is there says the commit's own record.

Must not break: a key is found from its commit on until it is older than the lifetime. For that long the
commits themselves are kept, which `settings.check_lifetimes` sees to.
"""

from collections.abc import Callable, Iterable

from cynosure.persistence.commit.key_log import KEY_RUN, KeyLog, KeyRun, RunRef, short_hash
from cynosure.persistence.commit.records import COMMIT, Commit
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject, Store


class KeyFinder:
    """Looks keys up in states of one reference."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._refs: tuple[RunRef, ...] = ()
        self._runs: list[KeyRun] = []
        """Those of `_refs`: asking the cache for each of them would take longer than searching them."""

    async def find(
        self, commit: Commit, key_hash: str, *, since_us: int, absent_in: Commit | None = None
    ) -> ObjId | None:
        """The commit that contains this key, unless it is older than `since_us` (then: unknown).

        `absent_in`: an earlier state that is known not to contain it; what both share is not searched again.
        """
        hash, log = short_hash(key_hash), commit.key_log
        for commit_id in log.find_in_tail(hash):
            if await self._has_key(commit_id, key_hash, since_us):
                return commit_id
        known = absent_in.key_log.runs if absent_in else ()
        if log.runs == known:
            return None
        number = int.from_bytes(hash, "big")
        runs = await self._load(log.runs, known)
        # In one expression, because nearly always none is left.
        for run in [run for run in runs if run.taken[number >> run.shift]]:
            for commit_id in run.find(number):
                if await self._has_key(commit_id, key_hash, since_us):
                    return commit_id
        return None

    async def _load(self, refs: tuple[RunRef, ...], known: tuple[RunRef, ...]) -> list[KeyRun]:
        if refs is self._refs:
            return self._runs
        if known:
            # A run of merged ones may hold nothing new, but which those are nobody wrote down.
            searched = set(known)
            return await self._store.load_many(KEY_RUN, [ref.id for ref in refs if ref not in searched])
        at_hand = dict(zip(self._refs, self._runs, strict=True))
        missing = [ref for ref in refs if ref not in at_hand]
        loaded = await self._store.load_many(KEY_RUN, [ref.id for ref in missing])
        at_hand.update(zip(missing, loaded, strict=True))
        runs = [at_hand[ref] for ref in refs]
        self._refs, self._runs = refs, runs
        return runs

    async def _has_key(self, commit_id: ObjId, key_hash: str, since_us: int) -> bool:
        commit = await self._store.find(COMMIT, commit_id)
        if commit is None:  # Collected, and so older than any key that still counts.
            return False
        record = commit.record
        return record.time_us >= since_us and any(request.key_hash == key_hash for request in record.requests)


async def add_keys(
    commit: Commit,
    store: Store,
    key_hashes: Iterable[str],
    *,
    commit_id: ObjId,
    now_us: int,
    lifetime_us: int,
    new_id: Callable[[], ObjId],
) -> tuple[KeyLog, list[NewObject]]:
    """The log after adding keys and dropping expired ones, and the runs that must be written with it."""
    log = commit.key_log.since(now_us - lifetime_us)
    hashes = [short_hash(key_hash) for key_hash in key_hashes]
    if not hashes:
        return log, []
    log = log.with_entries(hashes, commit_id)
    if not log.is_tail_full:
        return log, []
    # One of each at a time: a commit is then never much larger than the others, and runs are merged faster
    # than they are made.
    new: list[NewObject] = []
    if old := log.mergeable():
        runs = await store.load_many(KEY_RUN, [run.id for run in old])
        merged = KeyRun.of(*(run.data for run in runs))
        new.append(NewObject(KEY_RUN, new_id(), merged))
        log = log.merged(old, RunRef(new[-1].id, merged.count, old[-1].last_us))
    run = KeyRun.of(log.tail)
    new.append(NewObject(KEY_RUN, new_id(), run))
    return log.tail_as(RunRef(new[-1].id, run.count, now_us)), new
