"""Settings of the store: where it is, what it caches, how long things live.

Lifetimes lean on each other: garbage collection may delete what nobody can still hold. `check_lifetimes`
must name every such pair; a new lifetime gets its line there in the same change.
"""

from datetime import timedelta
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from cynosure.common.errors import Misconfigured
from cynosure.common.quantities import format_duration
from cynosure.common.secrets import Secret
from cynosure.common.settings import ByteSize, Duration, DurationOrZero


class GcSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Garbage collection: what is kept, for how long, and how gently the rest is removed."""

    interval: Duration = timedelta(days=2)
    """Time between the starts of two collections. One instance of all servers runs them."""
    grace: Duration = timedelta(hours=3)
    """An object younger than this is never collected, reachable or not: its commit may still come."""
    history_retention: Duration = timedelta(days=30)
    """How far back the history of a catalog reaches: log, diff, restore, change feed."""
    undrop_window: Duration = timedelta(days=7)
    """How long a dropped entity can be restored by undrop."""
    rows_per_second: Annotated[int, Meta(ge=0)] = 5_000
    """Most rows that a collection reads or deletes per second; 0 is no limit."""


class NodeLeaseSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Leases of node ids, which keep object ids unique between processes."""

    duration: Duration = timedelta(minutes=10)
    """How long a node id stays taken after its process died, and how long a process that cannot renew its
    lease may still make ids."""
    renewal: Duration = timedelta(minutes=2)
    """Time between two renewals by a live process. Several must fit into the duration."""


class PersistenceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The store of all catalogs and realms."""

    url: Secret | None = None
    """URL of the store: `memory:`, `sqlite:PATH` or `postgresql://…`. A secret, because it may hold a
    password. Left out: `sqlite:` with the file `store.db` in the data directory."""
    cache_bytes: ByteSize = 64 * 2**20
    """Memory for decoded objects, per worker process."""
    index_buffer_bytes: ByteSize = 4 * 2**10
    """Recent index changes kept inside the commit object; above this they move into the index tree."""
    index_leaf_entries: Annotated[int, Meta(ge=8, le=4096)] = 128
    """Most entries of one index node. More makes the tree flatter and each commit larger."""
    commit_deadline: Duration = timedelta(seconds=60)
    """A commit that has not won by then is given up; no attempt begins later."""
    page_token_life: Duration = timedelta(hours=1)
    """How long the token of the next page can be used. The pages show one state for that long."""
    recent_heads: Annotated[int, Meta(ge=1, le=1000)] = 24
    """Earlier heads kept in each reference, for a disaster reset."""
    head_staleness: DurationOrZero = timedelta(0)
    """How old a head may be that a read is served from. Zero reads the head from the database for every
    request: reads are linearizable and a revoked right is gone with the next request."""
    node_lease: NodeLeaseSettings = NodeLeaseSettings()
    """See below."""
    gc: GcSettings = GcSettings()
    """See below."""


class _Sum(NamedTuple):
    names: str
    duration: timedelta


KEY_LIFETIME: Final = timedelta(minutes=35)
"""How long idempotency keys are known, where nothing else is said (`idempotency.lifetime` and `.buffer`)."""


def check_lifetimes(settings: PersistenceSettings, key_lifetime: timedelta = KEY_LIFETIME) -> None:
    """Refuse lifetimes that would let something be collected while it can still be used."""
    gc, lease = settings.gc, settings.node_lease
    deadline = _Sum("persistence.commit_deadline", settings.commit_deadline)
    page_life = _Sum("persistence.page_token_life", settings.page_token_life)
    grace = _Sum("persistence.gc.grace", gc.grace)
    retention = _Sum("persistence.gc.history_retention", gc.history_retention)
    keys = _Sum("idempotency.lifetime + idempotency.buffer", key_lifetime)

    _check_shorter(deadline, page_life)
    _check_shorter(page_life, grace)
    _check_shorter(_Sum("persistence.head_staleness", settings.head_staleness), grace)
    # A lease must outlive at least one renewal that failed.
    _check_not_longer(
        _Sum("2 * persistence.node_lease.renewal", 2 * lease.renewal),
        _Sum("persistence.node_lease.duration", lease.duration),
    )
    # A listing goes on on a state that may no longer be the head, whatever the age of its rows.
    _check_not_longer(page_life, retention)
    _check_not_longer(keys, retention)
    _check_not_longer(_Sum("persistence.gc.undrop_window", gc.undrop_window), retention)


def _check_shorter(low: _Sum, high: _Sum) -> None:
    if not low.duration < high.duration:
        raise _out_of_order(low, high, "shorter than")


def _check_not_longer(low: _Sum, high: _Sum) -> None:
    if not low.duration <= high.duration:
        raise _out_of_order(low, high, "at most")


def _out_of_order(low: _Sum, high: _Sum, relation: str) -> Misconfigured:
    details = {low.names: format_duration(low.duration), high.names: format_duration(high.duration)}
    return Misconfigured(
        "Two lifetimes contradict each other",
        fix=f"Make {low.names} {relation} {high.names}.",
        **details,
    )
