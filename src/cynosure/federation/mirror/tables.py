"""A table as the remote has it, registered here.

The same uuid is the same table: it keeps its id, and with it grants, policies and restrictions. Another uuid
under the same name is another table: the one before is given up and a new one made, in one commit, so that
nothing that was granted on the old one counts for the new one; but for names that are granted on by name. One
that was given up and is seen again has the id that waited for it (`returning.py`).
What hid rows or columns of the old one hides them of the new one (`waiting.py`).

Must not break: what is taken in is checked as a registration is (places allowed, free, the table's own). What
cannot be shown is refused without saying whose place it is, or which.
"""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import merge
from cynosure.catalog.dropping import make_drop
from cynosure.catalog.errors import LocationRefused, RestrictedColumn
from cynosure.catalog.file_references import places_in_file
from cynosure.catalog.files.importing import file_number_of
from cynosure.catalog.files.versions import Version, keep_version
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import prepared_creation
from cynosure.catalog.operations.register_table import MetadataFile, prepare_registration
from cynosure.catalog.properties import check_ours
from cynosure.catalog.resolve import find_table_ref, require_free_name, require_open
from cynosure.common.errors import BadInput
from cynosure.federation.errors import NotShown, RemoteMisbehaved
from cynosure.federation.mirror.changing import Collected, commit_mirror
from cynosure.federation.mirror.facades import find_facade
from cynosure.federation.mirror.forgetting import removing_table, removing_view
from cynosure.federation.mirror.namespaces import make_levels
from cynosure.federation.mirror.places import OUTSIDE, find_held, require_part, take_places
from cynosure.federation.mirror.returning import find_returning, leave_id
from cynosure.federation.mirror.seen import (
    ANYTHING,
    Anything,
    Expected,
    Seen,
    find_seen,
    noting,
    require_expected,
)
from cynosure.federation.mirror.waiting import leave_restrictions, take_restrictions
from cynosure.federation.remote import RemoteTable, Tag
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.snapshots import decode_metadata_log_entry
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_HIDDEN: Final = "a column that a policy is about was renamed, dropped or changed"
_UNUSABLE: Final = "its metadata cannot be taken in"


async def backfill_table(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    remote: RemoteTable,
    *,
    expected: Expected = ANYTHING,
) -> ManagedTable:
    """Have the table as the remote has it. Nothing is committed when it is so already.

    `expected`: what the mirror had when the remote was asked; `SeenMeanwhile` when it has something else by
    now. Left out, what the mirror has stays if it is a later version. `NotShown` when it cannot be here.
    """

    async def prepare(view: View) -> Prepared[ManagedTable]:
        return await prepare_table(catalog, caller, view, table, remote, expected=expected)

    return await commit_mirror(catalog, caller, "mirror-table", prepare)


async def prepare_table(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    remote: RemoteTable,
    *,
    expected: Expected = ANYTHING,
) -> Prepared[ManagedTable]:
    """The change that `backfill_table` commits."""
    await require_open(view)
    before, ref = await find_seen(view, table_key(table)), await find_table_ref(view, table)
    if ref is not None and before is not None:
        base = await _find_kept(catalog, view, ref, before, remote, expected)
        if base is not None:
            return Prepared(base)
    require_expected(before, expected, str(table))
    try:
        return await _prepare(catalog, caller, view, table, ref, before, remote)
    except LocationRefused as error:
        raise NotShown(str(table), problem=OUTSIDE) from error
    except RestrictedColumn as error:
        raise NotShown(str(table), problem=_HIDDEN) from error


async def _prepare(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef | None,
    before: Seen | None,
    remote: RemoteTable,
) -> Prepared[ManagedTable]:
    """The change that gives a name this version of this table. `ref` is the state of what has the name."""
    uuid, key, file = remote.uuid, table_key(table), _read(catalog, table, remote)
    is_by_name = before is not None and before.is_by_name
    changed = await make_levels(catalog, view, table.namespace)
    if ref is not None and (before is None or before.uuid == uuid):
        registered = await prepare_registration(catalog, caller, view, table, ref, file)
    elif ref is not None and is_by_name:
        registered = await _prepare_next(catalog, caller, view, table, ref, before, file)
    else:
        registered, is_facade = await _prepare_new(catalog, caller, view, table, ref, before, file)
        is_by_name = is_by_name or is_facade
    changed.add(registered)
    seen_us = catalog.shared.persistence.clock.now_us()
    merge(changed.changes, noting(key, Seen(remote.tag, uuid, seen_us, is_by_name), before))
    return changed.prepared(registered.result)


def _read(catalog: OpenCatalog, table: Identifier, remote: RemoteTable) -> MetadataFile:
    """What a remote says of a table, if all of it may be so in this catalog."""
    location = remote.tag.metadata_location
    if location is None:
        raise RemoteMisbehaved(catalog.entity.name, problem="a table without a metadata file")
    try:
        check_ours(remote.metadata.properties)
        places = places_in_file(catalog, remote.metadata, location)
    except LocationRefused as error:
        raise NotShown(str(table), problem=OUTSIDE) from error
    except BadInput as error:
        raise NotShown(str(table), problem=_UNUSABLE) from error
    require_part(catalog, table, places)
    return MetadataFile(remote.metadata, location, places)


async def _find_kept(
    catalog: OpenCatalog, view: View, ref: ObjRef, before: Seen, remote: RemoteTable, expected: Expected
) -> ManagedTable | None:
    """What the mirror has, if it stays."""
    is_same = before.is_of(remote.tag, remote.uuid)
    if not is_same and not (isinstance(expected, Anything) and before.uuid == remote.uuid):
        return None
    base = await load_table_at(view, ref.id, catalog.shared.tables)
    return base if is_same or _is_earlier(remote, before, base.metadata) else None


def _is_earlier(remote: RemoteTable, before: Seen, base: TableMetadata) -> bool:
    """Whether an answer is of a version before the one that the mirror has."""
    other = remote.metadata
    if _is_former(remote.tag, base):
        return True
    if _is_former(before.tag, other):
        return False
    # Clocks are their writers', so they count only where neither log says anything.
    return (base.last_sequence_number, base.last_updated_ms) > (
        other.last_sequence_number,
        other.last_updated_ms,
    )


def _is_former(tag: Tag, metadata: TableMetadata) -> bool:
    """Whether a version came before another one, as its log says."""
    former = [decode_metadata_log_entry(json).metadata_file for _, json in metadata.metadata_log]
    return tag.metadata_location in former


async def _prepare_next(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef,
    before: Seen | None,
    file: MetadataFile,
) -> Prepared[ManagedTable]:
    """Another table with the id of the one before, for names that are granted on; without its places."""
    base = await load_table_at(view, ref.id, catalog.shared.tables)
    await catalog.restrictions.check_schema_change(view, catalog.table(table), base.metadata, file.metadata)
    changed, below = await removing_table(catalog, caller, view, table), Overlay(view)
    below.add(changed.changes, changed.objects)
    registered, _ = await _prepare_new(catalog, caller, below, table, None, before, file)
    changed.add(registered)
    return changed.prepared(registered.result)


async def _prepare_new(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    replaced: ObjRef | None,
    before: Seen | None,
    file: MetadataFile,
) -> tuple[Prepared[ManagedTable], bool]:
    """A table that is new here, in place of what had the name; and whether it had been granted on by name."""
    changed, uuid = Collected(), file.metadata.table_uuid.lower()
    facade = await find_facade(view, table)
    known = facade or await find_returning(view, uuid, "table")
    entity_id = catalog.shared.persistence.ids.next() if known is None else known.id
    if known is not None:
        merge(changed.changes, known.changes)
    held, gone = await find_held(view, table), list[ObjId]()
    if replaced is not None:
        dropping = await make_drop(catalog, caller, view, table, replaced, is_given_up=True)
        changed.add(dropping.prepared())
        merge(changed.changes, leave_id(dropping.drop_id, before))
        old_uuid, gone = "" if before is None else before.uuid, [dropping.entity_id]
        left = await leave_restrictions(view, table, gone[0], uuid=old_uuid, is_name_left=False)
        merge(changed.changes, left)
    elif held is not None:
        changed.add(await removing_view(catalog, caller, view, table))
    else:
        await require_free_name(view, table, for_view=False)
    claimed = await take_places(catalog, caller, view, table, entity_id, file.places, held)
    kept, objects = keep_version(
        catalog,
        file.metadata,
        state_id=catalog.shared.persistence.ids.next(),
        entity_id=entity_id,
        base=None,
        metadata_location=file.location,
        file_number=file_number_of(file.location),
        claims=claimed.claims,
    )
    changed.add(prepared_creation(table, Version(kept, objects, []), claimed))
    schema = file.metadata.current_schema()
    changed.add(await take_restrictions(catalog, view, table, uuid, entity_id, schema, replaced=gone))
    return changed.prepared(kept), facade is not None
