"""Idempotency keys of recent commits, part of every reference's state.

The commit phase looks a request's key up on the very head it is about to replace, so one key can
never be committed twice, whatever was paused or taken over in between.

Keys are kept in buckets of time, each an index of its own: a key goes into the newest bucket, a
lookup asks every live bucket, and a bucket expires as a whole. So expiry costs nothing per key.

Must not break: a bucket lives until its *youngest* possible key is older than the lifetime.
"""

from collections.abc import Callable, Iterable

from cynosure.persistence.commit.records import Commit, KeyBucket
from cynosure.persistence.index import Index, IndexLimits, Node, NodeLoader
from cynosure.persistence.spi import ObjId

_BUCKETS = 4
"""Spans a lifetime is cut into: more make lookups dearer, fewer keep keys longer than needed."""


async def find_key(commit: Commit, nodes: NodeLoader, key_hash: str, *, since_us: int) -> ObjId | None:
    """The commit that contains this key, unless it is older than `since_us` (then: unknown)."""
    key = key_hash.encode()
    for bucket in commit.record.keys:
        value = await commit.bucket(bucket).find(nodes, key)
        if value is not None:
            commit_id, time_us = int.from_bytes(value[:8], "big"), int.from_bytes(value[8:], "big")
            return ObjId(commit_id) if time_us >= since_us else None
    return None


async def add_keys(
    commit: Commit,
    nodes: NodeLoader,
    key_hashes: Iterable[str],
    *,
    commit_id: ObjId,
    now_us: int,
    lifetime_us: int,
    new_id: Callable[[], ObjId],
    limits: IndexLimits,
) -> tuple[tuple[KeyBucket, ...], dict[int, Index], list[tuple[ObjId, Node]]]:
    """The buckets after adding keys and dropping expired ones, decoded where touched, and new nodes."""
    span_us = max(1, lifetime_us // _BUCKETS)
    live = tuple(bucket for bucket in commit.record.keys if bucket.start_us + span_us + lifetime_us > now_us)
    value = commit_id.to_bytes(8, "big") + now_us.to_bytes(8, "big")
    changes = {key_hash.encode(): value for key_hash in key_hashes}
    if not changes:
        return live, {}, []
    if live and live[0].start_us + span_us > now_us:
        newest, older = live[0], live[1:]
        index = commit.bucket(newest)
        start_us = newest.start_us
    else:
        index, older, start_us = Index.EMPTY, live, now_us
    applied = await index.apply(nodes, changes, new_id=new_id, limits=limits)
    bucket = KeyBucket(start_us=start_us, data=applied.index.encode())
    return (bucket, *older), {start_us: applied.index}, applied.nodes
