"""How many refusals are written: not as many as somebody likes to cause.

Must not break: what is not written is counted, and the count is written; what is remembered for that is
bounded.
"""

from typing import Final, Generic, NamedTuple, TypeVar

from cynosure.common.clock import Clock

K = TypeVar("K")
_MAX_KEYS: Final = 4_096
"""Of whom anything is remembered, or counted at a time. Nobody is forgotten who may not write now."""

_FORGET_EVERY_S: Final = 1.0
"""Looking through all of them for every refusal would be a burden that somebody likes to cause."""


class _Bucket(NamedTuple):
    left: float
    at_s: float


class WriteLimit(Generic[K]):
    """For each key so many a minute, and so many at once after a pause."""

    def __init__(self, clock: Clock, *, per_minute: int, at_once: int) -> None:
        self._clock = clock
        self._per_s = per_minute / 60.0
        self._at_once = float(at_once)
        self._buckets: dict[K, _Bucket] = {}
        self._suppressed: dict[K, int] = {}
        self._forgot_s = float("-inf")

    def admit(self, key: K) -> bool:
        """Whether one more may be written; else it is counted."""
        now_s = self._clock.monotonic_s()
        is_full = key not in self._buckets and len(self._buckets) >= _MAX_KEYS
        if is_full and now_s - self._forgot_s >= _FORGET_EVERY_S:
            self._forget_idle(now_s)
        left = self._left(self._buckets.get(key), now_s)
        is_admitted = left >= 1.0 and (key in self._buckets or len(self._buckets) < _MAX_KEYS)
        if is_admitted or key in self._buckets:
            self._buckets[key] = _Bucket(left - 1.0 if is_admitted else left, now_s)
        if not is_admitted and (key in self._suppressed or len(self._suppressed) < _MAX_KEYS):
            self._suppressed[key] = self._suppressed.get(key, 0) + 1
        return is_admitted

    def take_suppressed(self) -> dict[K, int]:
        """How many were not written since this was asked last."""
        suppressed, self._suppressed = self._suppressed, {}
        return suppressed

    def _left(self, bucket: _Bucket | None, now_s: float) -> float:
        if bucket is None:
            return self._at_once
        return min(self._at_once, bucket.left + (now_s - bucket.at_s) * self._per_s)

    def _forget_idle(self, now_s: float) -> None:
        """Those who may write as many as anybody need not be remembered."""
        self._forgot_s = now_s
        kept = {key: each for key, each in self._buckets.items() if self._left(each, now_s) < self._at_once}
        self._buckets = kept
