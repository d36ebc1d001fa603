"""One page of events.

Must not break: a reader who follows its cursors is told every event once, in one order that is the same for
all; and a page shows everything that was acknowledged before it was asked for.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cynosure.auth.audit.collect import EventCollector
from cynosure.auth.audit.cursor import EventCursors, expired
from cynosure.auth.audit.events import Decision, Event, StoredEvent, to_event
from cynosure.auth.audit.journal import LAST, TRIMMED, audit_of, find_mark, find_time, load_batches
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authorizer
from cynosure.auth.rbac import operations as ops
from cynosure.auth.require import require_allowed
from cynosure.auth.targets import RealmTarget
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import State
from cynosure.persistence.lifecycle import Persistence

MAX_EVENTS: Final = 1_000
MAX_WAIT_S: Final = 60.0
_LOOK_EVERY_S: Final = 1.0
"""Looking means asking for the heads of all catalogs; those who wait in one process share it."""
_MOST_LOOKED_AT: Final = 20_000
"""Events that one page looks at: a filter that nothing passes must not read a year."""
_BATCHES_AT_ONCE: Final = 16


class EventFilter(Struct, frozen=True):
    """Which events are wanted. What is left out does not matter."""

    since_us: int | None = None
    until_us: int | None = None
    principal: str | None = None
    """Also the service that acted for somebody."""
    operation: str | None = None
    decision: Decision | None = None
    target: str | None = None
    """A name; also everything below a namespace of this name."""
    catalog: str | None = None

    def passes(self, event: StoredEvent) -> bool:
        """Whether this event is wanted."""
        return (
            (self.since_us is None or event.time_us >= self.since_us)
            and (self.until_us is None or event.time_us < self.until_us)
            and (self.principal is None or self.principal in (event.principal, event.actor))
            and (self.operation is None or event.operation == self.operation)
            and (self.decision is None or event.decision == self.decision)
            and (self.catalog is None or _is_about_catalog(event, self.catalog))
            and (self.target is None or _is_about(event, self.target))
        )


class EventPage(Struct, frozen=True, rename="camel"):
    """Events, and where to go on."""

    events: Sequence[Event]
    cursor: str
    has_more: bool
    """Whether there are more events already. They may not pass the filter, and so may this page be empty."""


class EventReader:
    """Reads the events of realms for those who may."""

    def __init__(
        self,
        persistence: Persistence,
        authorizer: Authorizer,
        collector: EventCollector,
        cursors: EventCursors,
    ) -> None:
        self._persistence = persistence
        self._authorizer = authorizer
        self._collector = collector
        self._cursors = cursors
        self._is_ending = False

    def stop_waiting(self) -> None:
        """From now on nobody waits for events: the process is about to end."""
        self._is_ending = True

    async def read(
        self,
        caller: Caller,
        wanted: EventFilter,
        *,
        cursor: str | None = None,
        limit: int = 100,
        wait_s: float = 0.0,
    ) -> EventPage:
        """Events after `cursor`; without one, from the oldest. Waits up to `wait_s` when there are none."""
        if not 1 <= limit <= MAX_EVENTS:
            raise BadInput(
                "The number of events is out of range", field="limit", fix=f"Choose 1 to {MAX_EVENTS}."
            )
        if not 0 <= wait_s <= MAX_WAIT_S:
            raise BadInput(
                "The time to wait is out of range", field="wait", fix=f"Choose 0 to {MAX_WAIT_S:.0f} seconds."
            )
        clock = self._persistence.clock
        deadline_s = clock.monotonic_s() + wait_s
        at = None if cursor is None else self._cursors.open(caller.realm, cursor)
        while True:
            # Each time: rights may be taken away while somebody waits.
            await self._authorize(caller)
            is_complete = await self._collector.collect(caller.realm)
            state = (await audit_of(self._persistence, caller.realm).read(is_fresh=True)).state
            found, at, is_end = await _look(state, wanted, at, limit)
            left_s = deadline_s - clock.monotonic_s()
            if found or not is_end or not is_complete or left_s <= 0 or self._is_ending:
                break
            await clock.sleep(min(_LOOK_EVERY_S, left_s))
        events = [to_event(caller.realm, number, event) for number, event in found]
        sealed = self._cursors.seal(caller.realm, at)
        return EventPage(events, sealed, has_more=not is_end or not is_complete)

    async def _authorize(self, caller: Caller) -> None:
        targets = (RealmTarget(caller.realm),)
        await require_allowed(self._authorizer, caller, ops.READ_EVENTS, targets, None)


async def _look(
    state: State, wanted: EventFilter, at: int | None, limit: int
) -> tuple[list[tuple[int, StoredEvent]], int, bool]:
    """What passes; the last event looked at; whether that is the end."""
    trimmed, last = await find_mark(state, TRIMMED), await find_mark(state, LAST)
    if at is not None and at < trimmed.number:
        raise expired()
    if at is None:
        at = trimmed.number if wanted.since_us is None else await find_time(state, wanted.since_us)
    found: list[tuple[int, StoredEvent]] = []
    looked_at = 0
    while at < last.number and looked_at < _MOST_LOOKED_AT:
        batches = await load_batches(state, at, _BATCHES_AT_ONCE)
        if not batches:
            at = last.number  # All the rest was trimmed.
        for batch in batches:
            for number, event in batch.numbered():
                if number <= at:
                    continue
                at = number
                looked_at += 1
                if wanted.passes(event):
                    found.append((number, event))
                    if len(found) == limit:
                        return found, at, at >= last.number
    return found, at, at >= last.number


def _is_about(event: StoredEvent, name: str) -> bool:
    below = f"{name}."
    return any(
        each.name == name or each.name.startswith(below) or each.before == name for each in event.targets
    )


def _is_about_catalog(event: StoredEvent, name: str) -> bool:
    return event.catalog == name or any(
        (each.kind == "catalog" and each.name == name) or each.details.get("catalog") == name
        for each in event.targets
    )
