"""How far a migration is: the index `moving` of the catalog.

    migration        ─► Moving        that there is one; stays when the catalog is ours
    t2 a b t         ─► Taken         under the key that it has in `names`
    aside a b x      ─► t2 a b t      whose name at the remote x is; stays for as long as the remote has it
    given table a b t ─► Given        which catalog got what had this name last; stays

Must not break: these entries are stored. And the mark is in the same chain as the mirror, so whoever would
change the mirror for a request that began before is refused in the very commit.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from cynosure.catalog.changes import Changes
from cynosure.catalog.names import BEING_MOVED, Identifier, Namespace
from cynosure.federation.errors import BeingMoved
from cynosure.persistence.commit import View
from cynosure.persistence.index import after, decode_key, encode_key, prefix_of
from cynosure.persistence.listing import scan_all
from cynosure.persistence.spi import CatalogId, ObjId

INDEX: Final = "moving"
_ASIDE: Final = "aside"
_GIVEN: Final = "given"
GivenKind = Literal["table", "view"]
_PREFIX: Final = "cynosure_moved_"

Phase = Literal["taking", "giving", "releasing", "ending"]
"""`giving`: all is here, and its places are another catalog's, which gets one table after the other.
`releasing`: all is where it belongs, and the remote is asked to drop it. From the first of these two on there
is no way back. `ending`: it was given up, all of it is back at the remote, and only marks are left."""


class Chosen(Struct, frozen=True):
    """What of a catalog is to be moved; without anything, everything."""

    namespaces: tuple[Namespace, ...] = ()
    """With all that is in them."""
    tables: tuple[tuple[str, ...], ...] = ()
    """Single tables and views: namespace and name."""

    def has(self, name: Identifier) -> bool:
        """Whether a table or view is to be moved."""
        return (*name.namespace, name.name) in self.tables or self.has_whole(name.namespace)

    def has_whole(self, namespace: Namespace) -> bool:
        """Whether all that is in a namespace is to be moved."""
        if not self.namespaces and not self.tables:
            return True
        return any(namespace[: len(each)] == each for each in self.namespaces)

    def leads_to(self, namespace: Namespace) -> bool:
        """Whether a namespace is to be here: it is chosen, or above something that is."""
        below = (*self.namespaces, *(each[:-1] for each in self.tables))
        return self.has_whole(namespace) or any(each[: len(namespace)] == namespace for each in below)


class Moving(Struct, frozen=True, array_like=True):
    """A migration, and what was chosen for it. Stored: fields only get added, with defaults."""

    begun_us: int
    phase: Phase = "taking"
    keeps_remote: bool = False
    """Whether what is set aside stays at the remote, under the other name."""
    leaves_behind: bool = False
    """Whether what cannot be moved stays the remote's, and is given up here."""
    namespaces: tuple[tuple[str, ...], ...] = ()
    """Only what is in these is moved, the rest stays the remote's; empty: everything is."""
    tables: tuple[tuple[str, ...], ...] = ()
    """Single tables and views that are moved besides."""
    into: str = ""
    """Id of the catalog that gets them; empty: the catalog itself becomes ours."""
    leaves_policies: bool = False
    """Whether row filters and masks stay behind: they were seen to where the tables go."""
    ceded: tuple[str, ...] = ()
    """The places that the other catalog gets, since they are known."""

    @property
    def chosen(self) -> Chosen:
        """What is moved."""
        return Chosen(self.namespaces, self.tables)


class Taken(Struct, frozen=True, array_like=True):
    """A table or view on its way. Stored: fields only get added, with defaults."""

    aside: str
    """Its name at the remote once it is set aside, in the same namespace."""
    uuid: str
    is_held: bool = False
    """Whether its last version is here. Before, it may be under either name at the remote."""
    is_released: bool = False
    """Whether the remote has it no more."""
    is_returning: bool = False
    """Whether it gets its name back at the remote. It is not taken before that is done."""
    is_given: bool = False
    """Whether it is another catalog's, and no more in this one."""


class Given(Struct, frozen=True, array_like=True):
    """A table or view that went into another catalog. Stored: fields only get added, with defaults."""

    taker: CatalogId
    uuid: str
    given_us: int
    id: ObjId = ObjId(0)
    """That it has there; 0 when it is not known, because the migration was cut off just then."""


def name_aside(uuid: str, number: int) -> str:
    """The name that something gets at the remote: one that every remote can have.

    `number` is another one each time: whoever was held up while this was put back and taken again finds
    nothing under the name of then.
    """
    return _PREFIX + hashlib.sha256(f"{uuid} {number}".encode()).hexdigest()[:32]


async def find_moving(view: View) -> Moving | None:
    """The migration of a catalog; `None` when there is none."""
    value = await view.find(INDEX, BEING_MOVED)
    return None if value is None else _MOVING.decode(value)


async def require_unmoved(view: View, catalog: str) -> None:
    """Refuse what belongs to the remote while its catalog changes hands, and afterwards."""
    if await view.find(INDEX, BEING_MOVED) is not None:
        raise BeingMoved(catalog)


async def find_taken(view: View, key: bytes) -> Taken | None:
    """What was written down of the table or view with this key in `names`."""
    value = await view.find(INDEX, key)
    return None if value is None else _TAKEN.decode(value)


async def is_aside(view: View, name: Identifier) -> bool:
    """Whether this is the name at the remote of something that was set aside."""
    return name.name.startswith(_PREFIX) and await view.find(INDEX, _aside_key(name)) is not None


async def drop_aside(view: View, namespace: Namespace, names: Sequence[str]) -> Sequence[str]:
    """Names of a remote's tables or views, without those of what was moved and is still there."""
    candidates = [name for name in names if name.startswith(_PREFIX)]
    hidden = {name for name in candidates if await is_aside(view, Identifier(namespace, name))}
    return [name for name in names if name not in hidden] if hidden else names


def marking(moving: Moving | None) -> Changes:
    """Changes that set the mark, or take it away."""
    return {INDEX: {BEING_MOVED: None if moving is None else _ENCODER.encode(moving)}}


def noting_taken(key: bytes, name: Identifier, taken: Taken) -> Changes:
    """Changes that write down how far something is."""
    return {INDEX: {key: _ENCODER.encode(taken), _aside_key(set_aside(name, taken)): key}}


def erasing_taken(key: bytes, name: Identifier, taken: Taken) -> Changes:
    """Changes that forget that something was on its way."""
    return {INDEX: {key: None, _aside_key(set_aside(name, taken)): None}}


def closing_taken(key: bytes, name: Identifier, taken: Taken) -> Changes:
    """Changes that forget that something was on its way, but not its other name while the remote has it."""
    return {INDEX: {key: None}} if not taken.is_released else erasing_taken(key, name, taken)


def noting_given(kind: GivenKind, name: Identifier, given: Given) -> Changes:
    """Changes that write down which catalog got something."""
    return {INDEX: {_given_key(kind, name): _ENCODER.encode(given)}}


async def find_given(view: View, kind: GivenKind, name: Identifier) -> Given | None:
    """What became of the last table or view of this name that went into another catalog."""
    value = await view.find(INDEX, _given_key(kind, name))
    return None if value is None else _GIVEN_DECODER.decode(value)


async def find_given_in(view: View, kind: GivenKind, namespace: Namespace) -> list[Given]:
    """The same of all that is in a namespace."""
    found = await scan_all(view, INDEX, prefix_of(_GIVEN, kind, *namespace))
    return [_GIVEN_DECODER.decode(value) for _, value in found]


async def scan_given(
    view: View, behind: bytes | None, limit: int
) -> list[tuple[bytes, tuple[GivenKind, Identifier, Given]]]:
    """Some of all that went into other catalogs, behind a key: each with its kind and its name."""
    start = b"" if behind is None else after(behind)
    found = await view.scan(INDEX, prefix=prefix_of(_GIVEN), start=start, limit=limit)
    return [(key, (*_parse_given(key), _GIVEN_DECODER.decode(value))) for key, value in found]


def set_aside(name: Identifier, taken: Taken) -> Identifier:
    """The other name at the remote."""
    return Identifier(name.namespace, taken.aside)


def decode_taken(value: bytes) -> Taken:
    """An entry as a scan finds it."""
    return _TAKEN.decode(value)


def _aside_key(aside: Identifier) -> bytes:
    return encode_key(_ASIDE, *aside.namespace, aside.name)


def _given_key(kind: GivenKind, name: Identifier) -> bytes:
    return encode_key(_GIVEN, kind, *name.namespace, name.name)


def _parse_given(key: bytes) -> tuple[GivenKind, Identifier]:
    _, kind, *namespace, name = decode_key(key)
    return "table" if kind == "table" else "view", Identifier(tuple(namespace), name)


_ENCODER: Final = msgspec.msgpack.Encoder()
_MOVING: Final = msgspec.msgpack.Decoder(Moving)
_TAKEN: Final = msgspec.msgpack.Decoder(Taken)
_GIVEN_DECODER: Final = msgspec.msgpack.Decoder(Given)
