"""When something of a remote was last checked, in this process.

Bounded: what was checked longest ago is forgotten first, and asked for again. After a restart nothing is
known but when a version was first seen (`mirror.seen.Seen`).

Must not break: the time that counts is when the remote was asked, not when it answered; and an earlier
question never overwrites what a later one found.
"""

from collections import OrderedDict
from datetime import timedelta
from typing import Final, NamedTuple

from cynosure.catalog.opened import OpenCatalog
from cynosure.common.clock import Clock
from cynosure.federation.mirror.seen import Seen
from cynosure.federation.policy import CatalogPolicy
from cynosure.persistence.spi import CatalogId, RealmId

_MOST: Final = 100_000
"""Names that are remembered in a process; about 250 bytes each."""

_Place = tuple[RealmId, CatalogId, int, bytes]


class Checked(NamedTuple):
    """What the remote said."""

    asked_s: float
    """On the monotonic clock."""
    is_missing: bool = False


class Freshness:
    """What was checked of all remotes of one process."""

    __slots__ = ("_checked", "_clock", "_most", "_negative_s")

    def __init__(self, clock: Clock, negative: timedelta, *, most: int = _MOST) -> None:
        self._clock = clock
        self._negative_s = negative.total_seconds()
        self._most = most
        self._checked: OrderedDict[_Place, Checked] = OrderedDict()

    def now_s(self) -> float:
        """To be kept from before a question, for `note`."""
        return self._clock.monotonic_s()

    def is_fresh(self, catalog: OpenCatalog, key: bytes, policy: CatalogPolicy) -> bool:
        """Whether what the mirror says of this key of `names`, also that it is not there, counts unasked."""
        known = self._checked.get(_place(catalog, key))
        if known is None:
            return False
        most_s = self._negative_s if known.is_missing else policy.max_staleness.total_seconds()
        return most_s > 0 and self._clock.monotonic_s() - known.asked_s < most_s

    def is_showable(self, catalog: OpenCatalog, key: bytes, seen: Seen | None, policy: CatalogPolicy) -> bool:
        """Whether what the mirror has may be shown while the remote does not answer."""
        most_s = policy.stale_if_down.total_seconds()
        if seen is None or most_s <= 0:
            return False
        known = self._checked.get(_place(catalog, key))
        if known is not None and not known.is_missing:
            return self._clock.monotonic_s() - known.asked_s <= most_s
        return (self._clock.now_us() - seen.seen_us) / 1e6 <= most_s

    def note(self, catalog: OpenCatalog, key: bytes, asked_s: float, *, is_missing: bool = False) -> None:
        """Remember what the remote said to a question of then."""
        place = _place(catalog, key)
        known = self._checked.get(place)
        if known is not None and known.asked_s > asked_s:
            return
        self._checked[place] = Checked(asked_s, is_missing)
        self._checked.move_to_end(place)
        if len(self._checked) > self._most:
            self._checked.popitem(last=False)

    def forget(self, catalog: OpenCatalog, key: bytes) -> None:
        """Have the remote asked the next time."""
        self._checked.pop(_place(catalog, key), None)


def _place(catalog: OpenCatalog, key: bytes) -> _Place:
    # With the version of its definition: after a change of the connection another remote is asked.
    entity = catalog.entity
    return catalog.realm, entity.id, entity.version, key
