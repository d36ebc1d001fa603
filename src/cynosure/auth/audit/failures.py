"""How many failed authentications are written: not as many as strangers like to cause.

Must not break: what is not written is counted, and the count is written.
"""

from typing import Final, NamedTuple

from cynosure.common.clock import Clock
from cynosure.persistence.spi import RealmId

_MAX_REALMS: Final = 1_024
_REST: Final = RealmId("")
"""Stands for all realms beyond those."""


class _Bucket(NamedTuple):
    left: float
    at_s: float


class FailureLimit:
    """So many a minute and realm, and as many at once."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock = clock
        self._most = float(per_minute)
        self._buckets: dict[RealmId, _Bucket] = {}
        self._suppressed: dict[RealmId, int] = {}

    def admit(self, realm: RealmId) -> bool:
        """Whether one more may be written; else it is counted."""
        name = realm if realm in self._buckets or len(self._buckets) < _MAX_REALMS else _REST
        now_s = self._clock.monotonic_s()
        left, at_s = self._buckets.get(name, _Bucket(self._most, now_s))
        left = min(self._most, left + (now_s - at_s) * self._most / 60.0)
        is_admitted = left >= 1.0
        self._buckets[name] = _Bucket(left - 1.0 if is_admitted else left, now_s)
        if not is_admitted and (realm in self._suppressed or len(self._suppressed) < _MAX_REALMS):
            self._suppressed[realm] = self._suppressed.get(realm, 0) + 1
        return is_admitted

    def take_suppressed(self) -> dict[RealmId, int]:
        """How many were not written since this was asked last."""
        suppressed, self._suppressed = self._suppressed, {}
        return suppressed
