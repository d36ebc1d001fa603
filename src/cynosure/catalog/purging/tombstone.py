"""A tombstone: a table has been dropped, and its files are to go.

It stands in the index `purges`, under the table's stable id and under its path, beside the table's entry in
`dropped`, which has the state and the places. Both go together, with the commit that ends it. A tombstone
that was lifted, or whose table was restored, leaves a trace under the id of the drop: for requests that are
repeated, and for people who ask what became of theirs.

Must not break: the three kinds of keys. Ids begin at `IDS`, paths and traces are before it.
"""

from typing import Final, Literal

from msgspec import field, structs

from cynosure.catalog.changes import Changes
from cynosure.common.delegated.settings import PurgeMode
from cynosure.persistence.commit import View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key, encode_key, prefix_of
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.persistence.store import NewObject

PURGES: Final = "purges"
IDS: Final = b"\x80"
"""Keys of the index that are ids begin here."""
_TRACE: Final = "lifted"
TRACES: Final = prefix_of(_TRACE)
"""What the keys of all traces begin with."""
_MOST_PER_PATH: Final = 1_000
_MOST_ERROR_CHARS: Final = 1_000

PurgeState = Literal["restorable", "purging"]


class Tombstone(Stored, frozen=True):
    """What is to be purged, and how far that is."""

    entity_id: ObjId
    """The table's stable id."""
    drop_id: ObjId
    """Its entry in `dropped`."""
    path: tuple[str, ...]
    """Namespace levels and name, as they were."""
    mode: PurgeMode
    """What its requester was promised: to `sync` ones the table comes back when nothing was begun."""
    correlation_id: str
    task_id: str
    created_us: int
    principal: str
    location: str
    metadata_location: str
    table_uuid: str = ""
    """Empty where it is not known: a table that was never read."""
    format_version: int = 0
    state: PurgeState = "restorable"
    purging_us: int = 0
    properties: dict[str, str] = field(default_factory=dict)
    """Instructions for the task."""
    traceparent: str = ""
    last_error: str = ""
    is_given_up: bool = False
    """Its requester was told that nothing was purged, but the table could not be put back: its name or its
    namespace is not free. Nothing may be deleted any more."""

    def failed(self, error: str, *, is_given_up: bool = False) -> "Tombstone":
        """The same, after something went wrong."""
        return structs.replace(
            self, last_error=error[:_MOST_ERROR_CHARS], is_given_up=is_given_up or self.is_given_up
        )


TOMBSTONE = struct_type("tombstone", Tombstone)


def correlation_of(catalog: CatalogId, drop_id: ObjId) -> str:
    """Names the purge of one drop, at whoever does it."""
    return f"purge-{catalog}-{drop_id}"


def putting(tombstone: Tombstone, object_id: ObjId) -> tuple[NewObject, Changes]:
    """What puts a tombstone in place, or another version of it."""
    value = ObjRef(object_id, TOMBSTONE.name).pack()
    return NewObject(TOMBSTONE, object_id, tombstone), {PURGES: dict.fromkeys(_keys(tombstone), value)}


def removing(tombstone: Tombstone) -> Changes:
    """What takes a tombstone away."""
    return {PURGES: dict.fromkeys(_keys(tombstone))}


def leaving_trace(tombstone: Tombstone, object_id: ObjId) -> tuple[NewObject, Changes]:
    """What takes a tombstone away whose table is there again."""
    value = ObjRef(object_id, TOMBSTONE.name).pack()
    changes: Changes = {PURGES: {**dict.fromkeys(_keys(tombstone)), trace_key(tombstone.drop_id): value}}
    return NewObject(TOMBSTONE, object_id, tombstone), changes


async def find_tombstone(view: View, entity_id: ObjId) -> Tombstone | None:
    """The tombstone of the table that had this id."""
    return await find_object(view, PURGES, encode_id_key(entity_id), TOMBSTONE)


async def find_tombstone_of(view: View, entity_id: ObjId, drop_id: ObjId) -> Tombstone | None:
    """The tombstone of this very drop: the same table may have another one by now."""
    found = await find_tombstone(view, entity_id)
    return found if found is not None and found.drop_id == drop_id else None


async def find_newest(view: View, path: tuple[str, ...]) -> Tombstone | None:
    """The tombstone of the table that had this path last."""
    entries = await view.scan(PURGES, prefix=prefix_of(*_path_parts(path)), limit=_MOST_PER_PATH)
    if not entries:
        return None
    return (await view.load_many(TOMBSTONE, [ObjRef.unpack(entries[-1][1]).id]))[0]


async def find_trace(view: View, drop_id: ObjId) -> Tombstone | None:
    """What the tombstone of a drop was, if it ended with the table put back."""
    return await find_object(view, PURGES, trace_key(drop_id), TOMBSTONE)


def trace_key(drop_id: ObjId) -> bytes:
    """Key of a trace."""
    return encode_key(_TRACE, f"{drop_id:016x}")


def _keys(tombstone: Tombstone) -> tuple[bytes, bytes]:
    path = encode_key(*_path_parts(tombstone.path), f"{tombstone.drop_id:016x}")
    return encode_id_key(tombstone.entity_id), path


def _path_parts(path: tuple[str, ...]) -> tuple[str, ...]:
    # With the number of levels in it, as in `names`: one path is never the beginning of another.
    return (f"p{len(path)}", *path)
