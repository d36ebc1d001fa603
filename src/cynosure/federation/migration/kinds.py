"""Tables and views, as a migration treats both alike."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, structs

from cynosure.auth.caller import Caller
from cynosure.catalog.claims import Places, changer_of, claim, join_places
from cynosure.catalog.errors import NoSuchTable, NoSuchView
from cynosure.catalog.file_references import places_in_file
from cynosure.catalog.files.view_versions import ViewVersion
from cynosure.catalog.locations import check_allowed, parse_place
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import TABLE
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier, Namespace, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_view import prepared_creation
from cynosure.catalog.operations.register_table import MetadataFile, prepare_registration
from cynosure.catalog.resolve import (
    find_table_ref,
    require_free_name,
    require_table_ref,
    require_view_ref,
)
from cynosure.federation.mirror import (
    Seen,
    find_seen,
    prepare_forgotten_table,
    prepare_forgotten_view,
    prepare_moved_table,
    prepare_moved_view,
    prepare_table,
    prepare_view,
)
from cynosure.federation.remote import NamesPage, RemoteCatalog, RemoteTable, RemoteView
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.spi import ObjId

F = TypeVar("F", RemoteTable, RemoteView)


class _Identified(Struct, frozen=True, rename="kebab"):
    """Of a view's metadata: which view it is."""

    view_uuid: str


class Kept(NamedTuple):
    """What the mirror has of a table or view."""

    held: Held
    metadata_location: str
    uuid: str
    """In lower case."""

    @property
    def places(self) -> Places:
        """All that it holds."""
        return Places(parse_place(self.held.location), tuple(map(parse_place, self.held.claims)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable(Generic[F]):
    """One kind of object that is moved."""

    kind: Literal["table", "view"]
    prefix: bytes
    """What the keys in `names` begin with."""
    key: Callable[[Identifier], bytes]
    """In `names`."""
    list_names: Callable[[RemoteCatalog, Namespace, str | None, int], Awaitable[NamesPage]]
    """A page of what the remote has: behind a token, so many."""
    load: Callable[[RemoteCatalog, Identifier], Awaitable[F]]
    """As the remote has it now."""
    rename: Callable[[RemoteCatalog, Identifier, Identifier], Awaitable[None]]
    """Give it another name at the remote."""
    drop: Callable[[RemoteCatalog, Identifier], Awaitable[None]]
    """Have the remote forget it, and leave its files."""
    prepare_seen: Callable[[OpenCatalog, Caller, View, Identifier, F, Seen | None], Awaitable[Prepared[Any]]]
    """The change that has it in the mirror, instead of what was seen before."""
    prepare_forgotten: Callable[[OpenCatalog, Caller, View, Identifier], Awaitable[Prepared[None]]]
    """The change that gives it up."""
    prepare_moved: Callable[
        [OpenCatalog, Caller, View, Identifier, Identifier, str], Awaitable[Prepared[None]]
    ]
    """The change that gives what has this uuid the name in the mirror that it has at the remote now."""
    find_kept: Callable[[View, Identifier], Awaitable[Kept | None]]
    """What the mirror has of it."""
    prepare_given: Callable[[OpenCatalog, Caller, View, Identifier, ObjId, View], Awaitable[Prepared[Any]]]
    """The change that registers what the mirror, the last one, has in another catalog, under this id."""

    async def prepare(
        self, catalog: OpenCatalog, caller: Caller, view: View, name: Identifier, found: F
    ) -> Prepared[Any]:
        """The change that has it in the mirror: what the remote has now counts, be it an earlier version."""
        known = await find_seen(view, self.key(name))
        return await self.prepare_seen(catalog, caller, view, name, found, known)


async def _load_table(remote: RemoteCatalog, name: Identifier) -> RemoteTable:
    found = await remote.load_table(name)
    if not isinstance(found, RemoteTable):
        raise NoSuchTable(str(name))
    return found


async def _find_kept_table(view: View, name: Identifier) -> Kept | None:
    ref = await find_table_ref(view, name)
    if ref is None:
        return None
    (state,) = await view.load_many(TABLE, [ref.id])
    held = Held(state.id, state.location, state.claims)
    return Kept(held, state.metadata_location, state.table_uuid.lower())


async def _prepare_given_table(
    target: OpenCatalog, caller: Caller, view: View, name: Identifier, entity_id: ObjId, mirror: View
) -> Prepared[Any]:
    ref = await require_table_ref(mirror, name)
    table = await load_table_at(mirror, ref.id, target.shared.tables)
    places = places_in_file(target, table.metadata, table.state.metadata_location)
    former = [parse_place(text) for text in (table.state.location, *table.state.claims)]
    places = join_places(places.location, [*places.others, *former])
    file = MetadataFile(table.metadata, table.state.metadata_location, places)
    return await prepare_registration(target, caller, view, name, None, file, entity_id=entity_id)


async def _list_views(remote: RemoteCatalog, namespace: Namespace, token: str | None, size: int) -> NamesPage:
    if not remote.abilities.has_views:
        return NamesPage(())
    return await remote.list_views(namespace, token=token, size=size)


async def _load_view(remote: RemoteCatalog, name: Identifier) -> RemoteView:
    found = await remote.load_view(name)
    if not isinstance(found, RemoteView):
        raise NoSuchView(str(name))
    return found


async def _find_kept_view(view: View, name: Identifier) -> Kept | None:
    state = await find_object(view, "names", view_key(name), VIEW)
    return None if state is None else _keep_view(state)


async def _prepare_given_view(
    target: OpenCatalog, caller: Caller, view: View, name: Identifier, entity_id: ObjId, mirror: View
) -> Prepared[Any]:
    ref, persistence = await require_view_ref(mirror, name), target.shared.persistence
    (state,) = await mirror.load_many(VIEW, [ref.id])
    for text in (state.metadata_location, state.location, *state.claims):
        check_allowed(target, text, field="location")
    await require_free_name(view, name, for_view=True)
    places = _keep_view(state).places
    claimed = await claim(view, changer_of(target, caller, entity_id), places)
    now_us = persistence.clock.now_us()
    given = structs.replace(state, id=entity_id, created_us=now_us, updated_us=now_us)
    return prepared_creation(name, ViewVersion(persistence.ids.next(), given), claimed)


def _keep_view(state: ViewState) -> Kept:
    uuid = msgspec.json.decode(state.json, type=_Identified).view_uuid.lower()
    return Kept(Held(state.id, state.location, state.claims), state.metadata_location, uuid)


TABLES: Final[Movable[RemoteTable]] = Movable(
    kind="table",
    prefix=b"t",
    key=table_key,
    list_names=lambda remote, namespace, token, size: remote.list_tables(namespace, token=token, size=size),
    load=_load_table,
    rename=lambda remote, source, target: remote.rename_table(source, target),
    drop=lambda remote, name: remote.drop_table(name, is_purge=False),
    prepare_seen=lambda catalog, caller, view, name, found, known: prepare_table(
        catalog, caller, view, name, found, expected=known
    ),
    prepare_forgotten=prepare_forgotten_table,
    prepare_moved=prepare_moved_table,
    find_kept=_find_kept_table,
    prepare_given=_prepare_given_table,
)
VIEWS: Final[Movable[RemoteView]] = Movable(
    kind="view",
    prefix=b"v",
    key=view_key,
    list_names=_list_views,
    load=_load_view,
    rename=lambda remote, source, target: remote.rename_view(source, target),
    drop=lambda remote, name: remote.drop_view(name),
    prepare_seen=lambda catalog, caller, view, name, found, known: prepare_view(
        catalog, caller, view, name, found, expected=known
    ),
    prepare_forgotten=prepare_forgotten_view,
    prepare_moved=prepare_moved_view,
    find_kept=_find_kept_view,
    prepare_given=_prepare_given_view,
)


def movable_of(key: bytes) -> Movable[Any]:
    """The kind of what has this key in `names`."""
    return TABLES if key.startswith(TABLES.prefix) else VIEWS
