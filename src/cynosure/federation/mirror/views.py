"""A view as the remote has it, registered here. As `tables.py`, which see.

Must not break: a view's SQL is shown to who may read it, and run for nobody on the remote's word: engines and
the gateway resolve what it names with the rights of who asks.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import merge
from cynosure.catalog.claims import Places, changer_of, claim, join_places
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_references import is_inside_table
from cynosure.catalog.files.importing import file_number_of
from cynosure.catalog.files.view_versions import ViewVersion
from cynosure.catalog.locations import check_allowed, check_paths, parse_place
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_view import prepared_creation
from cynosure.catalog.properties import check_ours
from cynosure.catalog.resolve import require_free_name, require_open
from cynosure.common.errors import BadInput
from cynosure.federation.errors import NotShown, RemoteMisbehaved
from cynosure.federation.mirror.changing import Collected, commit_mirror
from cynosure.federation.mirror.forgetting import removing_table, removing_view
from cynosure.federation.mirror.namespaces import make_levels
from cynosure.federation.mirror.places import OUTSIDE, find_held, require_part, take_places
from cynosure.federation.mirror.returning import find_returning
from cynosure.federation.mirror.seen import (
    ANYTHING,
    Anything,
    Expected,
    Seen,
    find_seen,
    noting,
    require_expected,
)
from cynosure.federation.remote import RemoteView
from cynosure.iceberg.views import encode_view, parse_view
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_UNUSABLE = "its metadata cannot be taken in"


async def backfill_view(
    catalog: OpenCatalog,
    caller: Caller,
    name: Identifier,
    remote: RemoteView,
    *,
    expected: Expected = ANYTHING,
) -> ViewState:
    """Have the view as the remote has it. Nothing is committed when it is so already.

    `expected`: as of `backfill_table`.
    """

    async def prepare(view: View) -> Prepared[ViewState]:
        return await prepare_view(catalog, caller, view, name, remote, expected=expected)

    return await commit_mirror(catalog, caller, "mirror-view", prepare)


async def prepare_view(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    name: Identifier,
    remote: RemoteView,
    *,
    expected: Expected = ANYTHING,
) -> Prepared[ViewState]:
    """The change that `backfill_view` commits."""
    await require_open(view)
    key, uuid = view_key(name), remote.uuid
    before, value = await find_seen(view, key), await view.find("names", key)
    known = None if value is None else (await view.load_many(VIEW, [ObjRef.unpack(value).id]))[0]
    if known is not None and before is not None and _stays(catalog, known, before, remote, expected):
        return Prepared(known)
    require_expected(before, expected, str(name))
    places = _read(catalog, name, remote)
    changed = await make_levels(catalog, view, name.namespace)
    try:
        if known is not None and value is not None and before is not None and before.uuid == uuid:
            state = await _add_version(catalog, caller, view, changed, name, known, value, remote, places)
        else:
            state = await _add_new(catalog, caller, view, changed, name, remote, places)
    except LocationRefused as error:
        raise NotShown(str(name), problem=OUTSIDE) from error
    seen_us = catalog.shared.persistence.clock.now_us()
    merge(changed.changes, noting(key, Seen(remote.tag, uuid, seen_us), before))
    return changed.prepared(state)


def _stays(
    catalog: OpenCatalog, known: ViewState, before: Seen, remote: RemoteView, expected: Expected
) -> bool:
    """Whether what the mirror has stays: it is the same, or a later version."""
    if before.is_of(remote.tag, remote.uuid):
        return True
    if not isinstance(expected, Anything) or before.uuid != remote.uuid:
        return False
    # By the log alone: the time of a version is its writer's, and a former one may come back.
    former = parse_view(known.json, limits=catalog.limits).version_log[:-1]
    log = remote.metadata.version_log
    return bool(log) and log[-1].value in [each.value for each in former]


def _read(catalog: OpenCatalog, name: Identifier, remote: RemoteView) -> Places:
    """What a remote's view holds, if all that it says may be so in this catalog."""
    metadata, file = remote.metadata, remote.tag.metadata_location
    if file is None:
        raise RemoteMisbehaved(catalog.entity.name, problem="a view without a metadata file")
    try:
        location = check_allowed(catalog, metadata.location, field="location")
        check_ours(metadata.properties)
        others = check_paths(catalog, metadata.properties)
        if not is_inside_table(catalog, location, metadata.properties, file):
            others.append(parse_place(file))
        places = join_places(location, others)
    except LocationRefused as error:
        raise NotShown(str(name), problem=OUTSIDE) from error
    except BadInput as error:
        raise NotShown(str(name), problem=_UNUSABLE) from error
    require_part(catalog, name, places)
    return places


async def _add_version(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    changed: Collected,
    name: Identifier,
    known: ViewState,
    value: bytes,
    remote: RemoteView,
    places: Places,
) -> ViewState:
    former = [parse_place(text) for text in (known.location, *known.claims)]
    places = join_places(places.location, [*places.others, *former])
    held = Held(known.id, known.location, known.claims)
    claimed = await claim(view, changer_of(catalog, caller, known.id), places, before=held)
    version = _version(catalog, known.id, remote, claimed.claims)
    key = view_key(name)
    detail = raw_detail({"id": known.id, "path": (*name.namespace, name.name)})
    feed = Change(
        kind="view-updated", index="names", key=key, before=value, after=version.value, detail=detail
    )
    changed.add(Prepared(None, {"names": {key: version.value}}, [version.new], [feed]))
    merge(changed.changes, claimed.changes)
    return version.state


async def _add_new(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    changed: Collected,
    name: Identifier,
    remote: RemoteView,
    places: Places,
) -> ViewState:
    """A view that is new here, in place of what had the name."""
    if await view.find("names", table_key(name)) is not None:
        changed.add(await removing_table(catalog, caller, view, name))
    elif await view.find("names", view_key(name)) is not None:
        changed.add(await removing_view(catalog, caller, view, name))
    else:
        await require_free_name(view, name, for_view=True)
    held = await find_held(view, name)
    returning = await find_returning(view, remote.uuid, "view")
    entity_id = catalog.shared.persistence.ids.next() if returning is None else returning.id
    if returning is not None:
        merge(changed.changes, returning.changes)
    claimed = await take_places(catalog, caller, view, name, entity_id, places, held)
    version = _version(catalog, entity_id, remote, claimed.claims)
    changed.add(prepared_creation(name, version, claimed))
    return version.state


def _version(
    catalog: OpenCatalog, entity_id: ObjId, remote: RemoteView, claims: tuple[str, ...]
) -> ViewVersion:
    persistence, file = catalog.shared.persistence, remote.tag.metadata_location or ""
    now_us = persistence.clock.now_us()
    state = ViewState(
        id=entity_id,
        created_us=now_us,
        updated_us=now_us,
        metadata_location=file,
        file_number=file_number_of(file),
        location=remote.metadata.location,
        json=encode_view(remote.metadata),
        claims=claims,
    )
    return ViewVersion(persistence.ids.next(), state)
