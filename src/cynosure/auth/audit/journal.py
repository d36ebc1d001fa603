"""The `audit` reference of a realm: a list of events in batches, and the marks that go with it.

| index       | key                                | value                                               |
|-------------|------------------------------------|-----------------------------------------------------|
| `events`    | number of a batch's *last* event   | the batch; so a scan from a number on begins right  |
| `positions` | `last`                             | `Mark` of the last batch                            |
|             | `trimmed`                          | `Mark` of the last batch that retention took away   |
|             | `from` catalog · reference         | `Position`: how far that reference has been told    |

Numbers are made from ids, which are made from the time: `max(last + 1, a fresh id)`. So they grow even over a
disaster reset of the reference, and no reader's place, nor a sink's, is ever past something it was not told.

Must not break: whoever appends compares the positions it began from with those of the state it commits on.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from cynosure.auth.audit.events import EVENT_BATCH, EventBatch, StoredEvent
from cynosure.persistence.commit import Committed, Committer, Prepared, Request, State, View
from cynosure.persistence.commit.request import Prepare
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import ObjId, RealmId
from cynosure.persistence.store import NewObject

R = TypeVar("R")

SYSTEM = "system"
"""Principal of what the server does by itself."""
BATCH_EVENTS = 256
EVENTS, POSITIONS = "events", "positions"
LAST, TRIMMED = encode_key("last"), encode_key("trimmed")


class Mark(Struct, frozen=True, array_like=True):
    """A place in the list."""

    number: int = 0
    recorded_us: int = 0


class Moved(Struct, frozen=True):
    """A position that an append moves: from what it must be to what it becomes."""

    before: bytes | None
    after: bytes | None


def audit_of(persistence: Persistence, realm: RealmId) -> Committer:
    """The committer of a realm's events. Only for realms that exist: it is kept for ever."""
    return persistence.committer(realm_reference(realm, "audit"))


async def append(
    persistence: Persistence,
    realm: RealmId,
    events: Sequence[StoredEvent],
    moved: Mapping[bytes, Moved] | None = None,
    *,
    operation: str,
) -> bool:
    """Append events and move positions, in one commit. `False` when another one has moved a position."""
    return await commit(persistence, realm, operation, append_in(persistence, events, moved))


def append_in(
    persistence: Persistence, events: Sequence[StoredEvent], moved: Mapping[bytes, Moved] | None = None
) -> Prepare[bool]:
    """What `append` commits."""
    moving = moved or {}

    async def prepare(view: View) -> Prepared[bool]:
        for key, each in moving.items():
            if await view.find(POSITIONS, key) != each.before:
                return Prepared(False)
        positions: dict[bytes, bytes | None] = {key: each.after for key, each in moving.items()}
        listed: dict[bytes, bytes | None] = {}
        objects: list[NewObject] = []
        mark = await find_mark(view, LAST)
        for at in range(0, len(events), BATCH_EVENTS):
            batch_id = persistence.ids.next()
            batch = _make_batch(events[at : at + BATCH_EVENTS], mark, batch_id, persistence.clock.now_us())
            objects.append(NewObject(EVENT_BATCH, batch_id, batch))
            listed[encode_id_key(batch.last)] = ObjRef(batch_id, EVENT_BATCH.name).pack()
            mark = Mark(batch.last, batch.recorded_us)
        if listed:
            positions[LAST] = msgspec.msgpack.encode(mark)
        return Prepared(True, {EVENTS: listed, POSITIONS: positions}, objects)

    return prepare


async def commit(persistence: Persistence, realm: RealmId, operation: str, prepare: Prepare[R]) -> R:
    """Commit to the list as the server itself."""
    outcome = await audit_of(persistence, realm).commit(Request(prepare, SYSTEM, operation=operation))
    assert isinstance(outcome, Committed)  # noqa: S101 - the request has no idempotency key
    return outcome.result


async def find_mark(view: View, key: bytes) -> Mark:
    """The mark under this key; that of an empty list when there is none yet."""
    value = await view.find(POSITIONS, key)
    return Mark() if value is None else msgspec.msgpack.decode(value, type=Mark)


async def load_batches(state: State, after: int, limit: int) -> list[EventBatch]:
    """Up to `limit` batches that hold events with numbers above `after`, in order."""
    entries = await state.scan(EVENTS, start=encode_id_key(after + 1), limit=limit)
    return await state.load_many(EVENT_BATCH, [ObjRef.unpack(value).id for _, value in entries])


async def find_time(state: State, since_us: int) -> int:
    """A number with nothing after it, and all before it, recorded earlier than `since_us`: where to begin."""
    low, high = (await find_mark(state, TRIMMED)).number, (await find_mark(state, LAST)).number
    # Batches are ordered by when they were recorded, and none holds an event that is later than that.
    while low < high:
        middle = (low + high) // 2
        batches = await load_batches(state, middle, 1)
        if batches and batches[0].recorded_us < since_us:
            low = batches[0].last
        else:
            high = middle
    return low


def _make_batch(events: Sequence[StoredEvent], mark: Mark, batch_id: ObjId, now_us: int) -> EventBatch:
    latest_us = max(event.time_us for event in events)
    return EventBatch(
        first=max(mark.number + 1, batch_id),
        recorded_us=max(mark.recorded_us, now_us, latest_us),
        events=tuple(events),
    )
