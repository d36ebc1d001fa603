"""Stores with many live idempotency keys, as busy servers leave them.

A maintainer must not break: what is stored comes from the production code; only the requests that would have
brought it are left out.
"""

import random

from msgspec.structs import replace

from cynosure.idempotency.record import RECORD, Record, finalized
from cynosure.persistence.commit.recent_keys import add_keys
from cynosure.persistence.commit.records import COMMIT, Commit
from cynosure.persistence.ids.snowflake import named_id
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import SYSTEM_REALM, RefKey
from cynosure.persistence.store import NewObject

_LOADED_AT_ONCE = 128
_KEPT_US = 35 * 60 * 1_000_000


async def load_keys(persistence: Persistence, reference: RefKey, count: int) -> None:
    """A commit whose state has so many keys, as if they had come over the last minutes."""
    committer = persistence.committer(reference)
    store, base = committer.store, await committer.read()
    commit, commit_id = base.state.commit, base.state.commit_id
    chance = random.Random(1)
    for _ in range(0, count, _LOADED_AT_ONCE):
        log, runs = await add_keys(
            commit,
            store,
            [f"{chance.getrandbits(256):064x}" for _ in range(_LOADED_AT_ONCE)],
            commit_id=commit_id,
            now_us=persistence.clock.now_us(),
            lifetime_us=3_600_000_000,
            new_id=persistence.ids.next,
        )
        encoded = [store.encode(run) for run in runs]
        await store.backend.write([row for each in encoded for row in each.rows])
        for each in encoded:
            store.remember(each)
        commit = Commit(replace(commit.record, key_log=log.pack()), key_log=log)
    new_id = persistence.ids.next()
    record = replace(
        commit.record,
        sequence=commit.record.sequence + 1,
        time_us=persistence.clock.now_us(),
        parents=(commit_id,),
        requests=(),
    )
    rows = store.encode(NewObject(COMMIT, new_id, Commit(record))).rows
    if not await store.backend.swap_ref(base.ref, base.ref._replace(head=new_id), rows):
        raise AssertionError("Somebody else writes to this store")


async def load_records(persistence: Persistence, count: int) -> None:
    """Records of so many requests that are done and can still be asked for again."""
    store, now_us = persistence.store(SYSTEM_REALM), persistence.clock.now_us()
    chance = random.Random(2)
    for first in range(0, count, _LOADED_AT_ONCE):
        hashes = [f"{chance.getrandbits(256):064x}" for _ in range(min(_LOADED_AT_ONCE, count - first))]
        writes = [store.to_insert(RECORD, named_id(key_hash), _done(key_hash, now_us)) for key_hash in hashes]
        await store.backend.write_each(writes, is_relaxed=True)


def _done(key_hash: str, now_us: int) -> Record:
    record = Record(
        key_hash=key_hash,
        realm="default",
        method="POST",
        path="/api/catalog/v1/bench/namespaces/bench/tables/t000",
        principal="root",
        payload_hash=key_hash[::-1],
        created_us=now_us,
        updated_us=now_us,
        expires_us=now_us + _KEPT_US,
    )
    return finalized(record, now_us=now_us, status=200, is_in_chain=True)
