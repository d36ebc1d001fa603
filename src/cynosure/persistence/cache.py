"""Decoded objects in memory, weighed in bytes, dropped least recently used first.

Immutable objects need no invalidation: an id means the same value for ever. Values of mutable types
and "no such object" are kept only with an expiry, which their type declares.

Must not break: a hit costs well under a microsecond, it is on every request's path many times.
"""

from collections import OrderedDict
from typing import Any

from cynosure.common.clock import Clock

CacheKey = tuple[str, str, str, int]
"""An `ObjKey` or a plain tuple equal to it (cheaper to build on hot paths)."""


class _Absent:
    """What the cache holds for an object known not to exist."""


ABSENT = _Absent()
_ENTRY_BYTES = 250
"""The key tuple, the entry and its place in the ordered dictionary."""


class ObjectCache:
    """One per process, shared by all realms and catalogs: keys carry both."""

    def __init__(self, capacity_bytes: int, clock: Clock) -> None:
        self._capacity_bytes = capacity_bytes
        self._clock = clock
        self._entries: OrderedDict[CacheKey, tuple[Any, int, float]] = OrderedDict()
        self.weight_bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: CacheKey) -> Any | None:
        """The value, `ABSENT`, or `None` when nothing is known."""
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        value, weight_bytes, expires_s = entry
        if expires_s and self._clock.monotonic_s() >= expires_s:
            del self._entries[key]
            self.weight_bytes -= weight_bytes
            self.misses += 1
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return value

    def put(self, key: CacheKey, value: Any, weight_bytes: int, *, expires_after_s: float = 0.0) -> None:
        """Remember a value. A value heavier than the whole cache is not kept."""
        self.discard(key)
        weight_bytes += _ENTRY_BYTES
        if weight_bytes > self._capacity_bytes:
            return
        expires_s = self._clock.monotonic_s() + expires_after_s if expires_after_s else 0.0
        self._entries[key] = (value, weight_bytes, expires_s)
        self.weight_bytes += weight_bytes
        while self.weight_bytes > self._capacity_bytes:
            _, (_, dropped_bytes, _) = self._entries.popitem(last=False)
            self.weight_bytes -= dropped_bytes

    def discard(self, key: CacheKey) -> None:
        """Forget a key."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.weight_bytes -= entry[1]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.weight_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)
