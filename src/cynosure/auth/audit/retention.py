"""What is older than the audit's own retention goes.

Rows of what was taken off the list are collected when the history that still shows them is.

Must not break: a batch goes only when all of its events are old, and the mark says up to where they went.
"""

from datetime import timedelta
from typing import Final

import msgspec

from cynosure.auth.audit.events import EVENT_BATCH
from cynosure.auth.audit.journal import EVENTS, POSITIONS, TRIMMED, Mark, commit
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import RealmId

OPERATION: Final = "trim-events"
_BATCHES_AT_ONCE: Final = 256
_MOST_COMMITS: Final = 64
"""Of one call. What is left goes with the next one."""


async def trim_events(persistence: Persistence, realm: RealmId, retention: timedelta) -> int:
    """Take what is older off the list; how many batches that were."""
    before_us = persistence.clock.now_us() - retention // timedelta(microseconds=1)

    async def prepare(view: View) -> Prepared[int]:
        entries = await view.scan(EVENTS, limit=_BATCHES_AT_ONCE)
        refs = [ObjRef.unpack(value) for _, value in entries]
        batches = await view.load_many(EVENT_BATCH, [ref.id for ref in refs])
        old = [batch for batch in batches if batch.recorded_us < before_us]
        if not old:
            return Prepared(0)
        mark = Mark(old[-1].last, old[-1].recorded_us)
        changes: dict[str, dict[bytes, bytes | None]] = {
            EVENTS: {encode_id_key(batch.last): None for batch in old},
            POSITIONS: {TRIMMED: msgspec.msgpack.encode(mark)},
        }
        return Prepared(len(old), changes)

    trimmed = 0
    for _ in range(_MOST_COMMITS):
        gone = await commit(persistence, realm, OPERATION, prepare)
        trimmed += gone
        if gone < _BATCHES_AT_ONCE:
            break
    return trimmed
