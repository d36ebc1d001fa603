"""A realm's list of catalogs: its entries, and the locations they claim.

Index `names`: name to `CatalogEntity`. Index `ids`: id to the key in `names`; being there is what makes a
catalog exist (`persistence.scopes`). Index `locations`: every location a catalog may use, to its id; also one
that was taken from it, until nothing of it is left there (`operations.release_locations`).

Index `ceded`: a place that a federated catalog gave to another one, with the tables in it (`ceding.py`).

Must not break: no location of one catalog is equal to, above or below one of another. Whoever could write
there through one catalog would else write into the other one's tables. The one exception is a place that was
ceded, between giver and taker: the giver's own state keeps everything of it away from there.
"""

from collections.abc import Iterable

from msgspec import Struct

from cynosure.auth.receipts import Done
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.ceding import Cession, find_cession
from cynosure.catalog.entities import CATALOG, CatalogEntity
from cynosure.catalog.errors import CatalogLocationRefused, InvalidName, NoSuchCatalog
from cynosure.catalog.names import check_name
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_key, encode_key, prefix_of
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import CatalogId
from cynosure.storage.location import Location, is_allowed

RESERVED_PREFIX = "SYSTEM$"
MAX_LOCATIONS = 100
"""Of one catalog."""


class Listed(Struct, frozen=True):
    """A catalog and the version of it that the list has."""

    ref: ObjRef
    entity: CatalogEntity


class RecalledCatalog:
    """How a catalog comes back as a request made or changed it (`auth/receipts.py`): from its own change."""

    def keep(self, result: CatalogEntity, key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return b""

    async def recall(self, done: Done) -> CatalogEntity:
        """See `Recall.recall`."""
        ref = done.find_after("catalog-created", "catalog-updated")
        return (await done.after.load_many(CATALOG, [ref.id]))[0]


def check_catalog_name(name: str) -> str:
    """Refuse what cannot be the name of a catalog."""
    check_name(name, field="name")
    if name.lstrip().upper().startswith(RESERVED_PREFIX):
        raise InvalidName(
            "The name is reserved", field="name", fix=f"Do not begin it with {RESERVED_PREFIX}.", name=name
        )
    return name


async def load_listed(view: View, name: str) -> Listed:
    """The catalog of this name; `NoSuchCatalog` when the list has none."""
    listed = await find_listed(view, name)
    if listed is None:
        raise NoSuchCatalog(name)
    return listed


async def find_listed(view: View, name: str) -> Listed | None:
    """The catalog of this name, or `None`."""
    value = await view.find("names", encode_key(name)) if name else None
    if value is None:
        return None
    ref = ObjRef.unpack(value)
    return Listed(ref, (await view.load_many(CATALOG, [ref.id]))[0])


def location_keys(entity: CatalogEntity) -> set[bytes]:
    """The keys in `locations` that a catalog has."""
    return {encode_key(*location.key()) for location in list_held(entity)}


def outermost(entity: CatalogEntity) -> list[Location]:
    """The allowed locations of a catalog that are not inside another one of them."""
    return _outermost(entity.storage.allowed_locations)


def list_held(entity: CatalogEntity) -> list[Location]:
    """The locations that no other catalog may have: those it may use, and those it has left."""
    return _outermost([*entity.storage.allowed_locations, *(each.location for each in entity.kept)])


def _outermost(texts: Iterable[str]) -> list[Location]:
    parsed = sorted({Location.parse(each) for each in texts}, key=Location.key)
    return [each for each in parsed if not any(other != each and each.is_within(other) for other in parsed)]


def check_locations(entity: CatalogEntity) -> None:
    """Refuse a catalog whose tables would go where it may not write."""
    allowed = outermost(entity)
    if (count := len(list_held(entity))) > MAX_LOCATIONS:
        raise BadInput(
            "A catalog has too many locations",
            field="allowed-locations",
            fix=f"Name at most {MAX_LOCATIONS}; those that were taken from it are counted for a while.",
            locations=count,
        )
    base = Location.parse(entity.base_location, field="base-location")
    if not is_allowed(base, allowed):
        raise CatalogLocationRefused(
            "The base location is not inside the allowed locations",
            fix="Name a base location below one of the allowed ones.",
            location=base.text,
        )


async def require_unclaimed(view: View, locations: Iterable[Location], catalog: CatalogId) -> None:
    """Refuse locations that overlap with those of another catalog, without saying whose."""
    for location in locations:
        for key, owner in await _overlapping(view, location):
            if owner != catalog.encode() and not await _is_ceded(view, location, catalog, key, owner):
                raise CatalogLocationRefused(
                    "The location belongs to another catalog",
                    fix="Choose a location that is neither above nor below that of another catalog.",
                    location=location.text,
                )


async def _overlapping(view: View, location: Location) -> list[tuple[bytes, bytes]]:
    parts = location.key()
    found: list[tuple[bytes, bytes]] = []
    for length in range(1, len(parts) + 1):
        key = encode_key(*parts[:length])
        if (owner := await view.find("locations", key)) is not None:
            found.append((key, owner))
    # All of them: what was ceded to many catalogs must not hide the location of another.
    return found + await scan_all(view, "locations", prefix_of(*parts))


async def _is_ceded(view: View, location: Location, catalog: CatalogId, key: bytes, owner: bytes) -> bool:
    """Whether a catalog and the owner of this key may overlap there: the one gave it to the other."""
    parts = location.key()
    is_below = len(decode_key(key)) > len(parts)
    cession = await find_cession(view, key if is_below else encode_key(*parts))
    other = CatalogId(owner.decode())
    return cession == (Cession(catalog, other) if is_below else Cession(other, catalog))
