"""Events told to one sink: every realm in its own order, from where it was left.

Must not break: first the sink takes the events, then its position moves. A crash in between tells them again.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.audit import metrics
from cynosure.auth.audit.events import StoredEvent, to_event
from cynosure.auth.audit.journal import LAST, TRIMMED, audit_of, find_mark, load_batches
from cynosure.auth.audit.sink import SINK_POSITION, Sink, SinkPosition, position_id
from cynosure.common.errors import CynosureError, LeaseLost
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import Versioned

FIRST_WAIT_S: Final = 1.0
MAX_WAIT_S: Final = 60.0
_BATCHES_AT_ONCE: Final = 4
TRIMMED_REASON: Final = "Retention took these events away before they were delivered"
_log = Log(__name__)


class _Page(NamedTuple):
    """Events with their numbers."""

    events: list[tuple[int, StoredEvent]]
    has_more: bool


class _Trouble(Struct, frozen=True):
    """A realm whose events the sink did not take."""

    failures: int
    until_s: float


class Delivery:
    """Tells one sink the events of all realms. At most one process should, or they are told twice."""

    def __init__(self, persistence: Persistence, sink: Sink) -> None:
        self._persistence = persistence
        self._sink = sink
        self._trouble: dict[RealmId, _Trouble] = {}
        self._lag_s: dict[RealmId, float] = {}
        self.delivered = 0

    @property
    def name(self) -> str:
        """The sink's."""
        return self._sink.name

    async def run_once(self, realms: list[RealmId], check: Callable[[], None]) -> bool:
        """One page for each realm; whether any has more. `check` raises when another process delivers."""
        is_behind = False
        self._lag_s = {realm: lag_s for realm, lag_s in self._lag_s.items() if realm in realms}
        for realm in realms:
            trouble = self._trouble.get(realm)
            if trouble is not None and self._persistence.clock.monotonic_s() < trouble.until_s:
                continue
            check()
            try:
                is_behind |= await self._deliver(realm, check)
                self._trouble.pop(realm, None)
            except LeaseLost:
                raise
            except CynosureError as error:
                self._fail(realm, error)
        metrics.SINK_LAG.set(max(self._lag_s.values(), default=0.0), sink=self.name)
        return is_behind

    def _fail(self, realm: RealmId, error: CynosureError) -> None:
        failures = self._trouble[realm].failures + 1 if realm in self._trouble else 1
        # The exponent is capped because a float overflows at 2**1024.
        wait_s = min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 64))
        wait_s *= self._persistence.rng.uniform(0.75, 1.0)
        self._trouble[realm] = _Trouble(failures, self._persistence.clock.monotonic_s() + wait_s)
        metrics.SINK_FAILURES.inc(sink=self.name)
        _log.event(
            "audit.delivery_failed",
            level=WARNING,
            sink=self.name,
            realm=realm,
            failures=failures,
            retry_in_s=round(wait_s, 1),
            error=error,
        )

    async def _deliver(self, realm: RealmId, check: Callable[[], None]) -> bool:
        clock = self._persistence.clock
        position = await self._load_position(realm)
        page = await self._load_page(realm, position.value.number)
        if not page.events:
            self._lag_s[realm] = 0.0
            return False
        self._lag_s[realm] = max(0.0, (clock.now_us() - page.events[0][1].time_us) / 1_000_000)
        check()
        await self._sink.deliver([to_event(realm, number, event) for number, event in page.events])
        # Order: only now, when they are taken.
        moved = replace(position.value, number=page.events[-1][0], updated_us=clock.now_us())
        if await self._persistence.store(realm).swap(SINK_POSITION, position, moved) is None:
            raise LeaseLost(
                "Another process delivers these events",
                fix="Nothing to do: they are delivered there.",
                sink=self.name,
            )
        self.delivered += len(page.events)
        metrics.DELIVERED.inc(len(page.events), sink=self.name)
        if not page.has_more:
            self._lag_s[realm] = 0.0
        return page.has_more

    async def _load_position(self, realm: RealmId) -> Versioned[SinkPosition]:
        store, at = self._persistence.store(realm), position_id(self.name)
        beginning = SinkPosition(sink=self.name, number=0, updated_us=self._persistence.clock.now_us())
        while True:
            found = await store.fetch(SINK_POSITION, at) or await store.insert(SINK_POSITION, at, beginning)
            if found is not None:
                return found

    async def _load_page(self, realm: RealmId, after: int) -> _Page:
        state = (await audit_of(self._persistence, realm).read(is_fresh=True)).state
        trimmed, last = await find_mark(state, TRIMMED), await find_mark(state, LAST)
        events: list[tuple[int, StoredEvent]] = []
        # A new sink begins with what there is; one that was behind must know that it missed something.
        if 0 < after < trimmed.number:
            now_us = self._persistence.clock.now_us()
            events.append((trimmed.number, StoredEvent(time_us=now_us, kind="gap", reason=TRIMMED_REASON)))
        after = max(after, trimmed.number)
        while after < last.number and len(events) < self._sink.most_events:
            batches = await load_batches(state, after, _BATCHES_AT_ONCE)
            if not batches:
                return _Page(events, has_more=False)  # All the rest was trimmed.
            for batch in batches:
                room = self._sink.most_events - len(events)
                events += [each for each in batch.numbered() if each[0] > after][:room]
                after = events[-1][0]
        return _Page(events, has_more=after < last.number)
