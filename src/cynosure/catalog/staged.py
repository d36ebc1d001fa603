"""Tables that are being created: promised to one principal, and with them the places it may write to.

A client that stages a creation and wants access to files gets it before the table is there. So its places are
reserved first: they are in the index `locations`, as those of a table, and the reservation is in `staged`,
under its id and under its path. The commit that creates the table takes both over.

Must not break: a reservation lives longer than any credential that was made for it, so whoever gets the place
next shares it with nobody.
"""

from datetime import timedelta
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import Changes
from cynosure.catalog.locations import find_holder, location_key, parse_place
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key, encode_key, prefix_of
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject
from cynosure.storage.location import Location

IDS: Final = b"\x80"
"""Keys of the index `staged` that are ids begin here; before it are paths."""
_MOST_PER_PATH: Final = 1_000
_US: Final = timedelta(microseconds=1)
_SIGNATURE_US: Final = timedelta(minutes=15) // _US
"""For how long stores accept a signed request."""


class StagedTable(Stored, frozen=True, omit_defaults=True):
    """A table that one principal may create."""

    id: ObjId
    """Its stable id, when it is created."""
    path: tuple[str, ...]
    """Namespace levels and name."""
    table_uuid: str
    location: str
    claims: tuple[str, ...]
    """As in `TableState`."""
    principal_id: int
    """0 for an operator of the machine itself."""
    principal: str
    created_us: int
    sealed_metadata: bytes = b""
    """What the client was told, as JSON, of a request with a key: that key opens it (`RequestKey.open`)."""

    @property
    def held(self) -> Held:
        """What it holds."""
        return Held(self.id, self.location, self.claims)


STAGED = struct_type("staged-table", StagedTable, version=2)


def principal_id_of(caller: Caller) -> int:
    """Whom a reservation belongs to."""
    return caller.principal_id


def expired_before_us(catalog: OpenCatalog) -> int:
    """Reservations that are older than this are for nobody any more."""
    shared = catalog.shared
    return shared.persistence.clock.now_us() - shared.settings.staging_lifetime // _US


async def find_staged(view: View, location: Location) -> StagedTable | None:
    """The reservation that holds this place; `None` when nobody does, or a table that exists."""
    holder = await find_holder(view, location)
    return None if holder is None else await find_staged_by_id(view, holder)


async def find_staged_by_id(view: View, stable_id: ObjId) -> StagedTable | None:
    """The reservation of this id."""
    value = await view.find("staged", encode_id_key(stable_id))
    return None if value is None else (await view.load_many(STAGED, [ObjRef.unpack(value).id]))[0]


async def find_own_staged(
    catalog: OpenCatalog, view: View, caller: Caller, table: Identifier
) -> StagedTable | None:
    """The newest reservation that the caller has for a table of this name.

    Only while it outlives a request that is signed now; credentials live longer: `ends_us`.
    """
    prefix = prefix_of(*_path_parts((*table.namespace, table.name)), str(principal_id_of(caller)))
    entries = await view.scan("staged", prefix=prefix, limit=_MOST_PER_PATH)
    if not entries:
        return None
    newest = (await view.load_many(STAGED, [ObjRef.unpack(entries[-1][1]).id]))[0]
    return newest if newest.created_us >= expired_before_us(catalog) + _SIGNATURE_US else None


def ends_us(catalog: OpenCatalog, staged: StagedTable) -> int:
    """When somebody else may get the places of a reservation."""
    return staged.created_us + catalog.shared.settings.staging_lifetime // _US


def adding(staged: StagedTable, object_id: ObjId) -> tuple[NewObject, Changes]:
    """What puts a reservation into the index; its places are claimed apart."""
    value = ObjRef(object_id, STAGED.name).pack()
    return NewObject(STAGED, object_id, staged), {"staged": dict.fromkeys(_keys(staged), value)}


def removing(staged: StagedTable) -> Changes:
    """What takes a reservation and its places away."""
    places = (staged.location, *staged.claims)
    freed = dict.fromkeys(location_key(parse_place(text)) for text in places)
    return {**fulfilling(staged), "locations": freed}


def fulfilling(staged: StagedTable) -> Changes:
    """What takes a reservation away whose places the table keeps."""
    return {"staged": dict.fromkeys(_keys(staged))}


def _keys(staged: StagedTable) -> tuple[bytes, bytes]:
    path = encode_key(*_path_parts(staged.path), str(staged.principal_id), f"{staged.id:016x}")
    return encode_id_key(staged.id), path


def _path_parts(path: tuple[str, ...]) -> tuple[str, ...]:
    # With the number of levels in it, as in `names`: one path is never the beginning of another.
    return (f"p{len(path)}", *path)
