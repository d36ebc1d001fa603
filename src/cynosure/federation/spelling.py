"""Whether a remote has a name in this very spelling, or only takes it for another one.

Many remotes take `ORDERS` for `orders`; databases with such collations also `örders`, or `orders` with a
space behind it. Under each spelling there would be another table here, and what hides rows of one would not
hide those of the other. So when something is seen for the first time, the remote is asked once for a spelling
that nobody meant. If it has the same thing there too, it does not mind, and what its own list says counts.

That case matters is remembered for a while, for each namespace: then no more is asked of names that have no
accents, wide letters or spaces around them.

Must not break: nothing is taken in under a name of which the remote is known not to mind the spelling, unless
its list has exactly that name.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from enum import Enum
from string import ascii_letters
from typing import Final

from msgspec import Struct

from cynosure.catalog.errors import NoSuchNamespace, NoSuchTable, NoSuchView
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput
from cynosure.federation.aliases import ListNames, find_listed, make_plain
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused
from cynosure.federation.remote import RemoteCatalog
from cynosure.persistence.spi import CatalogId, RealmId
from cynosure.storage.errors import FileMissing

_MOST: Final = 100_000
"""Of what is remembered in a process; about 300 bytes each."""
_REMEMBERED_S: Final = 600.0
_NAMESPACES: Final = "namespaces"
_OTHER_CASE: Final = {ord(each): ord(each.swapcase()) for each in ascii_letters}

_Place = tuple[RealmId, CatalogId, int, str, Namespace]


class Spelled(Struct, frozen=True):
    """A name that a remote answered to."""

    kind: str
    """In which of its lists it would be."""
    parent: Namespace
    name: str
    lists: ListNames
    has_also: Callable[[str], Awaitable[bool]]
    """Whether it has the same thing under another name beside it. Raises what its loads raise."""


class Judged(Enum):
    """What a spelling is."""

    RIGHT = "right"
    """One that the remote does not mix up with others."""
    ONLY = "only"
    """The one that the remote lists, of several that it takes for the same."""
    WRONG = "wrong"


class Spelling:
    """Where remotes mind how names are spelled, as far as one process has found out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._settled: OrderedDict[_Place, float] = OrderedDict()
        """Until when it is not asked again."""

    async def is_namespace_right(
        self, catalog: OpenCatalog, remote: RemoteCatalog, namespace: Namespace
    ) -> bool:
        """Whether a remote that answers to this namespace has every level of it in this spelling."""
        for depth in range(1, len(namespace) + 1):
            level = _spelled_level(remote, namespace[:depth])
            if await self.judge(catalog, remote, level) is Judged.WRONG:
                return False
        return True

    async def judge(self, catalog: OpenCatalog, remote: RemoteCatalog, wanted: Spelled) -> Judged:
        """Of a name that a remote answers to: whether it has it in this spelling."""
        place = _place(catalog, wanted.kind, wanted.parent)
        for other in _other_spellings(wanted.name):
            is_telling = other == _swap_ascii(wanted.name)
            is_impossible = remote.abilities.names == "lower" and other != other.lower()
            if is_impossible or (is_telling and self._is_settled(place)):
                continue
            has_also = await _has_also(wanted, other)
            if has_also:
                listed = await find_listed(catalog, wanted.lists, wanted.parent, frozenset({wanted.name}), 1)
                return Judged.ONLY if listed else Judged.WRONG
            if has_also is not None and is_telling:
                self._settle(place)
        return Judged.RIGHT

    def _is_settled(self, place: _Place) -> bool:
        return self._settled.get(place, 0.0) > self._clock.monotonic_s()

    def _settle(self, place: _Place) -> None:
        self._settled[place] = self._clock.monotonic_s() + _REMEMBERED_S
        self._settled.move_to_end(place)
        if len(self._settled) > _MOST:
            self._settled.popitem(last=False)


def _spelled_level(remote: RemoteCatalog, path: Namespace) -> Spelled:
    async def has_also(other: str) -> bool:
        await remote.load_namespace((*path[:-1], other))
        return True

    return Spelled(_NAMESPACES, path[:-1], path[-1], remote.list_namespaces, has_also)


async def _has_also(wanted: Spelled, other: str) -> bool | None:
    """`None`: it is not the same, by an answer that is none to what was asked."""
    try:
        return await wanted.has_also(other)
    except (NoSuchNamespace, NoSuchTable, NoSuchView, BadInput):
        return False
    except (RemoteMisbehaved, RemoteRefused, FileMissing):
        # What was meant has just been read. Whoever means the same by this would have given it again.
        return None


def _other_spellings(name: str) -> list[str]:
    """Spellings that are not this one."""
    others = dict.fromkeys((_swap_ascii(name), name.swapcase(), make_plain(name)))
    return [each for each in others if each not in (name, "")]


def _swap_ascii(name: str) -> str:
    """The other case of plain letters, and of no others: whoever does not mind case does not mind this."""
    return name.translate(_OTHER_CASE)


def _place(catalog: OpenCatalog, kind: str, path: Namespace) -> _Place:
    # With the version of its definition: after a change of the connection it is another remote.
    return catalog.realm, catalog.entity.id, catalog.entity.version, kind, path
