"""What an event is: as stored, in batches, and as readers and sinks are given it.

Must not break: a stored struct gets new fields with defaults only. Numbers of events grow along the list and
are never used again, not even after a disaster reset of `audit`, because they are made from the time
(`journal.py`).
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict

from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import RealmId

Kind = Literal["change", "denial", "authentication-failure", "query", "gap"]
"""`query`: what a trusted service ran for somebody, as it says. `gap`: changes were made of which no account
is left; the event says which and why."""
Decision = Literal["allowed", "denied"]

MAX_TEXT = 1_000
"""Longest text of one field: names and reasons may come from strangers."""


class StoredTarget(Stored, frozen=True):
    """What an event is about."""

    kind: str = ""
    """As in `Operation.kinds`; empty for what has no kind of its own."""
    name: str = ""
    id: str = ""
    """Stable: kept by renames."""
    change: str = ""
    """What happened to it: `table-created` …; empty when nothing did."""
    before: str = ""
    """The name it had, when it was renamed."""
    details: dict[str, str] = field(default_factory=dict)


class StoredEvent(Stored, frozen=True):
    """One event. Who and what are as they were at its time."""

    time_us: int
    kind: str
    decision: str = ""
    """Empty for a gap: nobody decided."""
    operation: str = ""
    principal: str = ""
    actor: str = ""
    roles: tuple[str, ...] = ()
    request_id: str = ""
    catalog: str = ""
    """Name of the catalog it is about; empty when it is about the realm."""
    catalog_id: str = ""
    targets: tuple[StoredTarget, ...] = ()
    targets_omitted: int = 0
    """Targets beyond those that one event holds."""
    reason: str = ""
    missing: tuple[str, ...] = ()
    """Privileges that were missing."""
    count: int = 1
    """Of how many refusals this one tells."""
    reference: str = ""
    """The reference of the commit it was told from."""
    sequence: int = 0
    """Number of that commit."""
    details: dict[str, str] | UnsetType = UNSET
    """Of a query: how it ended, what it read, its SQL without constants. Others are stored as before it."""


class EventBatch(Stored, frozen=True):
    """Events that were appended together."""

    first: int
    """Number of the first one; the others follow by one."""
    recorded_us: int
    """Never earlier than that of the batch before, nor than any of its events."""
    events: tuple[StoredEvent, ...]

    @property
    def last(self) -> int:
        """Number of the last one."""
        return self.first + len(self.events) - 1

    def numbered(self) -> Iterator[tuple[int, StoredEvent]]:
        """The events with their numbers."""
        return enumerate(self.events, self.first)


EVENT_BATCH = struct_type("audit-batch", EventBatch)


class Target(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What an event is about."""

    kind: str = ""
    """`table`, `principal-role` and so on; empty for what has no kind of its own."""
    name: str = ""
    id: str = ""
    """Stable: kept by renames."""
    change: str = ""
    """What happened to it, such as `table-created`."""
    before: str = ""
    """The name it had, when it was renamed."""
    details: dict[str, str] = {}


class Event(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Something that was done or refused."""

    id: str
    """Unique within its realm. Later events have greater numbers."""
    time: str
    realm: str
    kind: Kind
    operation: str = ""
    decision: Decision | None = None
    principal: str = ""
    actor: str = ""
    """The service that acted for the principal."""
    roles: tuple[str, ...] = ()
    """Principal roles that were active."""
    request_id: str = ""
    catalog: str = ""
    catalog_id: str = ""
    targets: tuple[Target, ...] = ()
    targets_omitted: int = 0
    reason: str = ""
    missing: tuple[str, ...] = ()
    """Privileges that were missing."""
    count: int = 1
    """Of how many refusals this one tells."""
    reference: str = ""
    """The commit log that it was told from, and the number of its commit there."""
    sequence: int = 0
    details: dict[str, str] = {}
    """Of a query: how it ended, what it read, its SQL without constants."""


def to_event(realm: RealmId, number: int, stored: StoredEvent) -> Event:
    """A stored event as it is told."""
    told = asdict(stored)
    del told["unknown"], told["time_us"]
    told["targets"] = tuple(
        Target(each.kind, each.name, each.id, each.change, each.before, each.details)
        for each in stored.targets
    )
    told["decision"] = stored.decision or None
    told["details"] = stored.details or {}
    return Event(id=str(number), time=format_time(stored.time_us), realm=realm, **told)


def format_time(time_us: int) -> str:
    """A time as RFC 3339 has it, in UTC, to the microsecond."""
    seconds, rest_us = divmod(time_us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{rest_us:06d}Z"


def cut(text: str) -> str:
    """Text that fits into an event."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
