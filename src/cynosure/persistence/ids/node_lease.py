"""Leases of node ids: one updateable object per node id, changed by compare-and-swap.

A lease is the right to make ids with timestamps below `leased_until_us`. The next holder starts at that
timestamp, so ids stay unique however wrong a clock is. The skew margin only spares live holders: with
clocks that differ by less, a node id never has two holders at the same time.

Must not break: `leased_until_us` of a row never decreases, except when the holder itself gives the lease
back with the last timestamp it used; a row is never deleted (it is what a successor starts from).
"""

from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from cynosure.common.clock import Clock
from cynosure.common.errors import Contended, Damaged, LeaseLost, OutcomeUnknown, Unavailable
from cynosure.persistence.ids.owner import Owner, new_holder
from cynosure.persistence.ids.snowflake import EPOCH_MS, NODES, check_range, compose, decompose, snowflake_ms
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store, Versioned

_RANDOM_TRIES = 8
"""With half of all node ids leased, one start in 256 goes on to read them all."""
_NEVER_US = 1 << 62
_OWN_RACES = 4
"""How often a renewal may lose against an earlier attempt of its own whose answer was lost."""


class NodeLeaseRow(Stored, frozen=True, kw_only=True):
    """Who may use a node id."""

    holder: str
    """Random name of one grant; empty when the holder gave it back."""
    leased_until_us: int
    """No holder has used, or may use, this timestamp or a later one."""
    owner: Owner
    granted_us: int
    renewed_us: int


NODE_LEASE = struct_type("node-lease", NodeLeaseRow, is_mutable=True)


class NodeLease(NamedTuple):
    """A node id that this process holds."""

    node: int
    row: Versioned[NodeLeaseRow]
    not_before_ms: int
    """First timestamp that no earlier holder can have used. Since the epoch of ids."""
    deadline_s: float
    """Monotonic. The lease counts from before the request was sent: nobody else may count less."""

    @property
    def until_ms(self) -> int:
        """First timestamp that must not be used. Since the epoch of ids."""
        return snowflake_ms(self.row.value.leased_until_us)


class NodeLeaseStatus(NamedTuple):
    """A node id that is or was leased, for operators."""

    node: int
    owner: Owner
    is_leased: bool
    leased_until_us: int
    granted_us: int
    renewed_us: int


def lease_id(node: int) -> ObjId:
    """Id of the object that leases `node`: timestamp 0, sequence 0."""
    return compose(0, node, 0)


class NodeLeases:
    """The node leases of one store; `store` is that of the system realm."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rng: Random,
        owner: Owner,
        *,
        lease_s: float = 60.0,
        skew_margin_s: float = 5.0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._owner = owner
        self.lease_s = lease_s
        self._lease_us = round(lease_s * 1_000_000)
        self._margin_us = round(skew_margin_s * 1_000_000)

    async def acquire(self) -> NodeLease:
        """Lease any node id. `Unavailable` when all are leased."""
        for node in self._rng.sample(range(NODES), _RANDOM_TRIES):
            if isinstance(tried := await self._try(node), NodeLease):
                return tried
        soonest_us = _NEVER_US
        for node in self._rng.sample(range(NODES), NODES):
            if isinstance(tried := await self._try(node), NodeLease):
                return tried
            soonest_us = min(soonest_us, tried)
        raise self._all_leased(soonest_us)

    async def renew(self, lease: NodeLease) -> NodeLease:
        """Prolong a lease, also one whose time ran out if nobody took it. `LeaseLost` when someone did."""
        row = lease.row
        for _ in range(_OWN_RACES):
            # Order: both clocks are read before the request is sent.
            deadline_s, now_us = self._clock.monotonic_s() + self.lease_s, self._clock.now_us()
            renewed = replace(
                row.value,
                leased_until_us=max(row.value.leased_until_us, now_us + self._lease_us),
                renewed_us=now_us,
            )
            if swapped := await self._store.swap(NODE_LEASE, row, renewed):
                return lease._replace(row=swapped, deadline_s=deadline_s)
            row = await self._fetch_own(lease)
        raise _contended(lease.node)

    async def release(self, lease: NodeLease, *, last_ms: int) -> None:
        """Give a lease back. A successor can start at once, after `last_ms`, the last timestamp used."""
        row = lease.row
        for _ in range(_OWN_RACES):
            now_us = self._clock.now_us()
            until_us = max((last_ms + 1 + EPOCH_MS) * 1000, now_us)
            released = replace(row.value, holder="", leased_until_us=until_us, renewed_us=now_us)
            if await self._store.swap(NODE_LEASE, row, released):
                return
            row = await self._fetch_own(lease)
        raise _contended(lease.node)

    async def list(self) -> list[NodeLeaseStatus]:
        """All node ids that were ever leased."""
        now_us = self._clock.now_us()
        return [
            NodeLeaseStatus(
                node=decompose(row.id).node,
                owner=row.value.owner,
                # Nobody has one that was given back, though it cannot be had for a millisecond.
                is_leased=bool(row.value.holder) and self._free_from_us(row.value) > now_us,
                leased_until_us=row.value.leased_until_us,
                granted_us=row.value.granted_us,
                renewed_us=row.value.renewed_us,
            )
            for row in await self._store.scan(NODE_LEASE)
        ]

    async def _try(self, node: int) -> NodeLease | int:
        """Lease this node id if it is free, else say when it may become free (Unix microseconds)."""
        try:
            row = await self._store.fetch(NODE_LEASE, lease_id(node))
        except Damaged:
            # One bad row must not stop a server from starting, and nobody knows where to go on from it.
            return _NEVER_US
        deadline_s, now_us = self._clock.monotonic_s() + self.lease_s, self._clock.now_us()
        check_range(snowflake_ms(now_us))
        if row is not None and (free_us := self._free_from_us(row.value)) > now_us:
            return free_us
        wanted = NodeLeaseRow(
            holder=new_holder(self._rng),
            leased_until_us=now_us + self._lease_us,
            owner=self._owner,
            granted_us=now_us,
            renewed_us=now_us,
        )
        try:
            if row is None:
                won = await self._store.insert(NODE_LEASE, lease_id(node), wanted)
            else:
                won = await self._store.swap(NODE_LEASE, row, replace(wanted, unknown=row.value.unknown))
        except OutcomeUnknown:
            # It may be ours or not. Another node id costs less than finding out; this one runs out unused.
            return wanted.leased_until_us + self._margin_us
        if won is None:
            return wanted.leased_until_us + self._margin_us
        # Rounded up: the predecessor may have used the millisecond that its lease ends in.
        not_before_ms = 0 if row is None else snowflake_ms(row.value.leased_until_us + 999)
        return NodeLease(node, won, not_before_ms, deadline_s)

    async def _fetch_own(self, lease: NodeLease) -> Versioned[NodeLeaseRow]:
        """The row again after a lost race; `LeaseLost` unless it was an attempt of our own that won."""
        row = await self._store.fetch(NODE_LEASE, lease_id(lease.node))
        if row is None or row.value.holder != lease.row.value.holder:
            raise LeaseLost(
                "Another process took over the lease of this node id",
                fix="Try again; another one is being acquired. If this repeats, compare machine clocks.",
                node=lease.node,
                taken_by="" if row is None else str(row.value.owner),
            )
        return row

    def _free_from_us(self, row: NodeLeaseRow) -> int:
        # A lease that was given back needs no margin: its holder has stopped.
        return row.leased_until_us + (self._margin_us if row.holder else 0)

    def _all_leased(self, soonest_us: int) -> Unavailable:
        details = {}
        if soonest_us < _NEVER_US:
            details["soonest_free"] = datetime.fromtimestamp(soonest_us // 1_000_000, UTC).isoformat()
            details["free_in_s"] = str(max(0, soonest_us - self._clock.now_us()) // 1_000_000)
        return Unavailable(
            "All 1024 node ids are leased",
            fix="Wait until the soonest one is free, or stop servers that are not needed; "
            "'cynosure store status' shows who holds them.",
            **details,
        )


def _contended(node: int) -> Contended:
    return Contended(
        "The lease of this node id could not be changed, because answers of the database keep getting lost",
        fix="Try again.",
        node=node,
    )
