"""What the remote has no more under its name, and may have under another: its id waits for it.

A remote renames a table, and somebody asks for the old name before anybody sees the new one. So what is given
up leaves its id to its uuid, in the index `remote`, and with it grants and policies:

    i UUID ─► Gone       the drop that `dropped` has of it

Whoever takes in something with this uuid takes the id, for as long as what was dropped is kept. Then it is
another one.

Must not break: an id is taken for its own uuid only, and leaves `dropped` in the same commit. What somebody
drops through us, or gives away, leaves none.
"""

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes
from cynosure.catalog.dropped import DROPPED, Kind
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.mirror.seen import INDEX, Seen
from cynosure.federation.remote import Tag
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import Entries, find_object
from cynosure.persistence.index import after, encode_id_key, encode_key, prefix_of
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_BATCH: Final = 500


class Gone(Struct, frozen=True, array_like=True):
    """What was given up. Stored: new fields have defaults."""

    drop_id: ObjId
    tag: Tag = Tag()
    """Of the version that was seen last."""


class Returning(NamedTuple):
    """Something that was given up and is there again, and what takes its id."""

    id: ObjId
    changes: Changes
    state: ObjRef
    """Of the version that was seen last."""
    tag: Tag


def leave_id(drop_id: ObjId, seen: Seen | None) -> Changes:
    """What keeps the id of something that is given up, for itself."""
    if seen is None or not seen.uuid:
        return {}
    return {INDEX: {_key(seen.uuid): _ENCODER.encode(Gone(drop_id, seen.tag))}}


def end_id(uuid: str) -> Changes:
    """What has nothing wait for a uuid any more; put on top of what gives it up."""
    return {INDEX: {_key(uuid): None}} if uuid else {}


async def find_returning(view: View, uuid: str, kind: Kind) -> Returning | None:
    """What waits for this uuid; `None` when nothing does."""
    key = _key(uuid)
    value = await view.find(INDEX, key)
    if value is None:
        return None
    gone = _DECODER.decode(value)
    drop_key = encode_id_key(gone.drop_id)
    dropped = await find_object(view, "dropped", drop_key, DROPPED)
    if dropped is None or dropped.kind != kind:
        return None
    changes: Changes = {INDEX: {key: None}, "dropped": {drop_key: None}}
    return Returning(dropped.entity_id, changes, dropped.state, gone.tag)


async def forget_ids(catalog: OpenCatalog, caller: Caller) -> int:
    """Remove what waits for uuids whose drops are kept no more; how many. Done by the server itself."""
    state, start, forgotten = await catalog.read(), b"", 0
    while page := await state.scan(INDEX, prefix=prefix_of(_GONE), start=start, limit=_BATCH):
        if ended := await _find_ended(state, page):
            forgotten += await _forget(catalog, caller, ended)
        start = after(page[-1][0])
    return forgotten


async def _forget(catalog: OpenCatalog, caller: Caller, batch: Entries) -> int:
    async def prepare(view: View) -> Prepared[int]:
        # What was given up once more since then has another value.
        same = [key for key, value in batch if await view.find(INDEX, key) == value]
        return Prepared(len(same), {INDEX: dict.fromkeys(same)} if same else {})

    return await commit_part(catalog.committer, caller, "forget-ids", prepare)


async def _find_ended(view: View, page: Entries) -> Entries:
    return [
        (key, value)
        for key, value in page
        if await view.find("dropped", encode_id_key(_DECODER.decode(value).drop_id)) is None
    ]


def _key(uuid: str) -> bytes:
    return encode_key(_GONE, uuid)


_GONE: Final = "i"
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Gone)
