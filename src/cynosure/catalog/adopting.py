"""What is on its way into this catalog from another one: the index `adopting`.

    from 17       ─► when it began      that catalog 17 gives something; this one cannot be dropped meanwhile
    t2 a b t      ─► Adopted            under the key that it will have in `names`
    id 4711       ─► t2 a b t           whose places these are: claims name the id (`claims.py`)
    room 17       ─► places             that this catalog will have of catalog 17: a catalog has only so many

A migration reserves names and places here before this catalog may use the places at all
(`cynosure.federation.migration`).

Must not break: these entries are stored. And from the reservation to the table's own first commit nobody gets
its name or a place of it: whoever may create a table somewhere would else name the directory of one that is
on its way, and be given credentials for its files.
"""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import Claimed, releasing
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import ADOPTING
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_key, encode_key, prefix_of
from cynosure.persistence.listing import scan_all
from cynosure.persistence.spi import CatalogId, ObjId

_FROM: Final = "from"
_ID: Final = "id"
_ROOM: Final = "room"


class Adopted(Struct, frozen=True, array_like=True):
    """A table or view that is to come. Stored: fields only get added, with defaults."""

    id: ObjId
    """That it will have here."""
    uuid: str
    source: CatalogId
    """Who gives it."""
    location: str
    claims: tuple[str, ...] = ()

    @property
    def held(self) -> Held:
        """Its places, which are its own from now on."""
        return Held(self.id, self.location, self.claims)


async def find_mark(view: View, source: CatalogId) -> int | None:
    """When the migration from this catalog began; `None` when there is none."""
    value = await view.find(ADOPTING, _mark_key(source))
    return None if value is None else _TIME.decode(value)


def marking_source(source: CatalogId, begun_us: int | None) -> Changes:
    """Changes that write down that this catalog gives something; `None`: that it does no more."""
    return {ADOPTING: {_mark_key(source): None if begun_us is None else _ENCODER.encode(begun_us)}}


async def list_rooms(view: View) -> dict[CatalogId, tuple[str, ...]]:
    """The places that are to come, by the catalog that gives them; also those that are here already."""
    found = await scan_all(view, ADOPTING, prefix_of(_ROOM))
    return {CatalogId(decode_key(key)[1]): _PLACES.decode(value) for key, value in found}


def keeping_room(source: CatalogId, places: tuple[str, ...] | None) -> Changes:
    """Changes that write down which places come from a catalog; `None`: that none do any more."""
    return {ADOPTING: {_room_key(source): None if places is None else _ENCODER.encode(places)}}


async def find_adopted(view: View, key: bytes) -> Adopted | None:
    """What is to have this key in `names`."""
    value = await view.find(ADOPTING, key)
    return None if value is None else _ADOPTED.decode(value)


async def find_adopted_by_id(view: View, entity_id: ObjId) -> Adopted | None:
    """What is to have this id."""
    key = await view.find(ADOPTING, _id_key(entity_id))
    return None if key is None else await find_adopted(view, key)


def decode_adopted(value: bytes) -> Adopted:
    """An entry as a scan finds it."""
    return _ADOPTED.decode(value)


def reserving(key: bytes, adopted: Adopted, claimed: Claimed) -> Changes:
    """Changes that keep a name and these places for something."""
    changes: Changes = {ADOPTING: {key: _ENCODER.encode(adopted), _id_key(adopted.id): key}}
    merge(changes, claimed.changes)
    return changes


def fulfilling_adopted(key: bytes, adopted: Adopted) -> Changes:
    """Changes that take a reservation away whose places the table keeps."""
    return {ADOPTING: {key: None, _id_key(adopted.id): None}}


def dismissing(key: bytes, adopted: Adopted) -> Changes:
    """Changes that take a reservation away, and its places."""
    return {**fulfilling_adopted(key, adopted), "locations": releasing(adopted.held)}


def _mark_key(source: CatalogId) -> bytes:
    return encode_key(_FROM, source)


def _room_key(source: CatalogId) -> bytes:
    return encode_key(_ROOM, source)


def _id_key(entity_id: ObjId) -> bytes:
    return encode_key(_ID, str(entity_id))


_ENCODER: Final = msgspec.msgpack.Encoder()
_ADOPTED: Final = msgspec.msgpack.Decoder(Adopted)
_TIME: Final = msgspec.msgpack.Decoder(int)
_PLACES: Final = msgspec.msgpack.Decoder(tuple[str, ...])
