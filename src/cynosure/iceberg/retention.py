"""Which snapshots a table's own settings keep: `history.expire.*` properties and those of branches and tags.

A maintainer must not break: whatever is uncertain is kept. A snapshot goes only when every rule lets it go.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.properties import get_int
from cynosure.iceberg.snapshots import MAIN, SnapshotRef

MAX_SNAPSHOT_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS: Final = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"
DEFAULT_MAX_SNAPSHOT_AGE_MS: Final = 5 * 24 * 60 * 60 * 1000
DEFAULT_MIN_SNAPSHOTS: Final = 1
FOREVER_MS: Final = 2**63 - 1


class Retained(Struct, frozen=True):
    """What the settings keep and what they let go."""

    snapshot_ids: frozenset[int]
    expired_snapshot_ids: tuple[int, ...]
    """In the order of the table."""
    expired_refs: tuple[str, ...]


class _Ancestor(Struct, frozen=True, rename="kebab"):
    snapshot_id: int
    timestamp_ms: int
    parent_snapshot_id: int | None = None


def retained_snapshots(metadata: TableMetadata, now_ms: int) -> Retained:
    """Apply the rules of expiry at a point in time.

    A branch keeps its newest snapshots up to a number and an age, a tag its one; both go when they are too
    old themselves, except main. A snapshot that no branch leads to goes by age.
    """
    properties = metadata.properties
    max_age_ms = get_int(properties, MAX_SNAPSHOT_AGE, DEFAULT_MAX_SNAPSHOT_AGE_MS)
    min_count = max(1, get_int(properties, MIN_SNAPSHOTS, DEFAULT_MIN_SNAPSHOTS))
    max_ref_age_ms = get_int(properties, MAX_REF_AGE, FOREVER_MS)
    snapshots = {key: _ANCESTOR.decode(json) for key, json in metadata.snapshots}

    refs: dict[str, SnapshotRef] = {}
    for name, document in metadata.refs.items():
        ref = document.value
        limit_ms = max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        if name == MAIN or now_ms - snapshots[ref.snapshot_id].timestamp_ms <= limit_ms:
            refs[name] = ref

    kept: set[int] = set()
    reachable: set[int] = set()
    for ref in refs.values():
        kept.add(ref.snapshot_id)
        reachable.add(ref.snapshot_id)
        if ref.type == "tag":
            continue
        oldest_ms = now_ms - (max_age_ms if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms)
        wanted = min_count if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        is_within = True
        for count, snapshot in enumerate(_ancestors(ref.snapshot_id, snapshots)):
            reachable.add(snapshot.snapshot_id)
            is_within = is_within and (count < wanted or snapshot.timestamp_ms >= oldest_ms)
            if is_within:
                kept.add(snapshot.snapshot_id)
    kept.update(
        id_
        for id_, snapshot in snapshots.items()
        if id_ not in reachable and snapshot.timestamp_ms >= now_ms - max_age_ms
    )
    return Retained(
        snapshot_ids=frozenset(kept),
        expired_snapshot_ids=tuple(id_ for id_ in snapshots if id_ not in kept),
        expired_refs=tuple(name for name in metadata.refs if name not in refs),
    )


def _ancestors(start: int, snapshots: dict[int, _Ancestor]) -> Iterator[_Ancestor]:
    """A snapshot and those it was made from, as far back as the table has them."""
    seen: set[int] = set()
    at: int | None = start
    while at is not None and at not in seen and (snapshot := snapshots.get(at)) is not None:
        # Damaged metadata may hold a circle.
        seen.add(at)
        yield snapshot
        at = snapshot.parent_snapshot_id


_ANCESTOR: Final = msgspec.json.Decoder(_Ancestor)
