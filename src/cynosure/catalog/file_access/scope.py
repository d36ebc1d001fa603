"""Where the files of a table are, for whoever is given access to them.

Must not break: every location is checked against what the catalog allows now, each time it is given away.
What is remembered is remembered for exactly these locations and this set of allowed ones.
"""

from collections.abc import Mapping
from functools import lru_cache

from cynosure.catalog.claims import join_places
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.locations import PATHS, parse_place
from cynosure.catalog.managed.state import TableState
from cynosure.catalog.opened import OpenCatalog
from cynosure.storage.access.ports import Scope
from cynosure.storage.location import Location, is_allowed


def table_scope(catalog: OpenCatalog, state: TableState, *, is_writable: bool) -> Scope:
    """The places of a table.

    `LocationRefused` when the catalog does not allow its location, or one that its properties name, any more.
    Places that it has left are told as long as they are allowed: whoever takes one from the catalog takes
    the files that are still there from their readers, but not the whole table.
    """
    return scope_of(catalog, state.location, state.claims, state.properties, is_writable=is_writable)


def scope_of(
    catalog: OpenCatalog,
    location: str,
    claims: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
    *,
    is_writable: bool,
) -> Scope:
    """As `table_scope`, for something else that holds places: a reservation, a table of another format."""
    entity = catalog.entity
    paths = () if not properties else tuple([text for name in PATHS if (text := properties.get(name))])
    allowed = (entity.base_location, *entity.storage.allowed_locations)
    return _scope(location, claims, paths, allowed, is_writable)


@lru_cache(maxsize=20_000)
def _scope(
    location: str,
    claims: tuple[str, ...],
    paths: tuple[str, ...],
    allowed: tuple[str, ...],
    is_writable: bool,
) -> Scope:
    roots = [parse_place(text) for text in allowed]
    own = parse_place(location)
    for each in (own, *(parse_place(text) for text in paths)):
        if not is_allowed(each, roots):
            raise LocationRefused(
                "The catalog does not allow a location of this table any more",
                fix="Move the table, or allow the location again with 'cynosure catalogs update'.",
                field="location",
                location=each.text,
            )
    others = [each for each in map(parse_place, claims) if is_allowed(each, roots)]
    return Scope(_outermost(own, others), is_writable)


def _outermost(own: Location, others: list[Location]) -> tuple[Location, ...]:
    places = join_places(own, others)
    if any(own.is_within(each) for each in places.others):
        return places.others
    return (own, *places.others)
