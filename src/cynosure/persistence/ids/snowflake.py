"""Snowflake ids: when, who, how many; 63 bits, ordered by time.

    reserved 1 (0) | milliseconds since 2025-01-01T00:00Z 41 | node 10 | sequence 12

Must not break: the layout is in every stored row (golden ids in tests/persistence/ids); and within one
node id no timestamp is used by two holders: a grant is the half-open range [not_before, until) of
timestamps, and the generator makes no id outside it.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, ClockFault, LeaseLost, Unavailable
from cynosure.persistence.spi import ObjId

EPOCH_MS = 1_735_689_600_000
"""2025-01-01T00:00:00Z in Unix milliseconds."""
TIMESTAMP_BITS, NODE_BITS, SEQUENCE_BITS = 41, 10, 12
NODES = 1 << NODE_BITS
SPECIAL_MS = 1000
"""Timestamps below this are never drawn from a clock: they are for ids with a meaning of their own, such
as the node leases (timestamp 0, sequence 0)."""

MAX_BORROWED_MS = 1000
"""How far ids may run ahead of the clock when more than 4096 a millisecond are asked for."""
TOLERATED_STEP_MS = 10
"""A clock set back by no more than this (a usual correction) is waited out by counting on."""

_SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
_NODE_MASK = NODES - 1
_TIME_SHIFT = NODE_BITS + SEQUENCE_BITS
_END_MS = 1 << TIMESTAMP_BITS
_FIRST_ORDINARY = SPECIAL_MS << _TIME_SHIFT


class IdParts(NamedTuple):
    """What an id is made of."""

    timestamp_ms: int
    """Since `EPOCH_MS`."""
    node: int
    sequence: int


class IdSource(Protocol):
    """Makes ids for new objects."""

    def next(self) -> ObjId:
        """An id nobody has, greater than all this source gave before. Call from one thread only.

        `Unavailable` (`LeaseLost`, `ClockFault`) when no id can be made now; no id was spent.
        """
        ...


def compose(timestamp_ms: int, node: int, sequence: int) -> ObjId:
    """Put an id together. Parts that do not fit their bits are `BadInput`."""
    for field, value, end in (
        ("timestamp_ms", timestamp_ms, _END_MS),
        ("node", node, NODES),
        ("sequence", sequence, _SEQUENCE_MASK + 1),
    ):
        if not 0 <= value < end:
            raise BadInput("A part of an id is out of range", field=field, fix=f"Use 0 to {end - 1}.")
    return ObjId(timestamp_ms << _TIME_SHIFT | node << SEQUENCE_BITS | sequence)


def decompose(obj_id: ObjId) -> IdParts:
    """Take an id apart."""
    return IdParts(obj_id >> _TIME_SHIFT, obj_id >> SEQUENCE_BITS & _NODE_MASK, obj_id & _SEQUENCE_MASK)


def timestamp_us_of(obj_id: ObjId) -> int:
    """Unix microseconds in an id: when it was made, by its maker's clock, give or take what was borrowed."""
    return ((obj_id >> _TIME_SHIFT) + EPOCH_MS) * 1000


def snowflake_ms(unix_us: int) -> int:
    """Milliseconds since the epoch of ids, rounded down."""
    return unix_us // 1000 - EPOCH_MS


def named_id(name: str) -> ObjId:
    """The id of an updateable object that is found by its name.

    Outside the special ids; it may equal a snowflake. That is harmless: the object's type is part of
    its key, and a type uses either names or snowflakes, never both.
    """
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16])
    return ObjId(_FIRST_ORDINARY + digest % ((1 << 63) - _FIRST_ORDINARY))


def check_range(now_ms: int) -> None:
    """Refuse a clock that shows a time for which there are no ids."""
    if not SPECIAL_MS <= now_ms < _END_MS:
        raise ClockFault(
            "This machine's clock shows a time for which there are no object ids",
            fix="Set the clock; ids exist from 2025 to 2094.",
            unix_ms=now_ms + EPOCH_MS,
        )


class SnowflakeIds:
    """The generator of one process. `LeasedIds` grants it a node id and takes it back."""

    def __init__(self, clock: Clock, *, on_exhausted: Callable[[], None] = lambda: None) -> None:
        self._now_us = clock.now_us
        self._monotonic_s = clock.monotonic_s
        self._on_exhausted = on_exhausted
        """Called when the grant has ended or is used up, so that its keeper need not wait for its turn."""
        self._node = 0
        self._until_ms = 0
        self._deadline_s = float("-inf")
        self._last = ObjId(0)
        """The last id, or the last of the millisecond before the first one."""
        self._seen_unix_ms = 0
        """Highest time the clock has shown when an id was made."""

    @property
    def last_ms(self) -> int:
        """Timestamp of the last id; nothing up to and including it may be used again."""
        return self._last >> _TIME_SHIFT

    def grant(self, node: int, *, not_before_ms: int, until_ms: int, deadline_s: float) -> None:
        """Allow ids of `node` with timestamps in [`not_before_ms`, `until_ms`).

        Independent of what the wall clock shows, it ends at `deadline_s`, which is monotonic.
        """
        # Ids of one process increase, so a smaller node must not share a millisecond with an earlier one.
        first_ms = max(not_before_ms, SPECIAL_MS, self.last_ms + 1)
        self._last = compose(first_ms - 1, node, _SEQUENCE_MASK)
        self._node = node
        self.extend(until_ms=until_ms, deadline_s=deadline_s)

    def extend(self, *, until_ms: int, deadline_s: float) -> None:
        """Move the ends of the current grant."""
        self._until_ms, self._deadline_s = until_ms, deadline_s

    def revoke(self) -> None:
        """Make no id until the next grant."""
        self._deadline_s = float("-inf")

    def next(self) -> ObjId:
        """See `IdSource`."""
        last = self._last
        if (
            self._now_us() // 1000 == self._seen_unix_ms
            and self._monotonic_s() < self._deadline_s
            and last & _SEQUENCE_MASK != _SEQUENCE_MASK
        ):
            # Still in the last id's millisecond, which was checked when it began.
            self._last = obj_id = ObjId(last + 1)
            return obj_id
        return self._next_millisecond()

    def _next_millisecond(self) -> ObjId:
        if self._monotonic_s() >= self._deadline_s:
            self._on_exhausted()
            raise LeaseLost(
                "This process holds no node id at the moment, so it cannot make object ids",
                fix="Try again; a lease is being acquired. If this lasts, see 'cynosure store status'.",
            )
        unix_ms = self._now_us() // 1000
        now_ms = unix_ms - EPOCH_MS
        step_ms = self._seen_unix_ms - unix_ms
        if step_ms > TOLERATED_STEP_MS:
            raise ClockFault(
                "This machine's clock was set back, so new object ids could repeat old ones",
                fix="Wait until the clock has caught up, or restart this server; use a time service that "
                "slews the clock instead of setting it.",
                step_ms=step_ms,
            )
        check_range(now_ms)
        last_ms, sequence = self.last_ms, self._last & _SEQUENCE_MASK
        if now_ms > last_ms:
            timestamp_ms, sequence = now_ms, 0
        elif sequence < _SEQUENCE_MASK:
            timestamp_ms, sequence = last_ms, sequence + 1
        else:
            timestamp_ms, sequence = last_ms + 1, 0
        if timestamp_ms >= self._until_ms:
            self._on_exhausted()
            raise LeaseLost(
                "The lease of this process' node id ends before the next object id",
                fix="Try again; the lease is being renewed. If this lasts, see 'cynosure store status'.",
            )
        if timestamp_ms - now_ms > MAX_BORROWED_MS:
            raise Unavailable(
                "Object ids are asked for faster than they can be made",
                fix="Try again in a second.",
                ahead_ms=timestamp_ms - now_ms,
            )
        self._seen_unix_ms = max(self._seen_unix_ms, unix_ms)
        self._last = obj_id = compose(timestamp_ms, self._node, sequence)
        return obj_id
