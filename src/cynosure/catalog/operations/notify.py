"""Take a notification: the owner of an external table tells that it was created, changed or dropped.

A table's metadata is read from the file that is named, never from what the notification says of it. Whatever
is told about a table must be newer than what was told before, also after it was dropped: an old creation that
arrives late must not bring it back. So the time of the last notification is kept by the table's name, in the
index `notified`, and stays there when the table goes.

Must not break: the time, the table and its namespaces change in one commit, or not at all.
"""

from typing import Final, Literal

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.dropping import prepare_drop
from cynosure.catalog.entities import NAMESPACE, NamespaceEntity
from cynosure.catalog.errors import OutdatedNotification
from cynosure.catalog.locations import check_allowed
from cynosure.catalog.names import Identifier, namespace_key, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.register_table import MetadataFile, load_registrable, prepare_registration
from cynosure.catalog.resolve import find_table_ref, require_free_name, require_open
from cynosure.common.errors import BadInput
from cynosure.iceberg.metadata import TableMetadata
from cynosure.persistence.commit import Change, Prepared, State, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject

_INDEX: Final = "notified"
_TIME_BYTES: Final = 8

NotificationType = Literal["UNKNOWN", "CREATE", "UPDATE", "DROP", "VALIDATE"]


class Notification(Struct, frozen=True):
    """What the owner of a table tells."""

    type: NotificationType
    table_name: str
    timestamp: int
    """In whatever the owner counts; only compared with what it sent before."""
    table_uuid: str
    metadata_location: str


async def notify(catalog: OpenCatalog, caller: Caller, table: Identifier, told: Notification) -> None:
    """Do what a notification says. `OutdatedNotification` when a later one was taken before."""
    check = catalog.checking(caller, ops.SEND_NOTIFICATION, catalog.target())
    if await find_recalled(catalog.committer, caller, check=check, recall=NOTHING) is not None:
        return
    file: MetadataFile | None = None
    async with refusing(catalog.committer, caller, ops.SEND_NOTIFICATION.name):
        state = await catalog.read()
        await check(state)
        end_rehearsal(caller)
        _check(catalog, table, told)
        if told.type == "VALIDATE":
            check_allowed(catalog, told.metadata_location, field="payload.metadata-location")
            if await find_table_ref(state, table) is None:
                await require_free_name(state, table, for_view=False)
            return
        if told.type != "DROP":
            file = await _load_file(catalog, caller, state, table, told)
    if file is None:
        await _drop(catalog, caller, table, told)
    else:
        await _register(catalog, caller, table, told, file)


def _check(catalog: OpenCatalog, table: Identifier, told: Notification) -> None:
    if not catalog.is_facade:
        raise BadInput(
            "Only external catalogs take notifications",
            field="prefix",
            fix="Change the tables of an internal catalog through this server.",
            catalog=catalog.entity.name,
        )
    if catalog.is_federated:
        raise BadInput(
            "A federated catalog asks its remote and takes no notifications",
            field="prefix",
            fix="Send none; what the remote has now is seen when it is asked for.",
            catalog=catalog.entity.name,
        )
    if told.table_name not in (table.name, str(table)):
        raise BadInput(
            "The notification is about another table than its path",
            field="payload.table-name",
            fix="Name the same table in both.",
            table=str(table),
        )
    if not -(1 << 63) <= told.timestamp < 1 << 63:
        raise BadInput(
            "The timestamp is not a 64-bit number", field="payload.timestamp", fix="Send milliseconds."
        )
    if told.type == "UNKNOWN":
        raise BadInput(
            "A notification must say what happened",
            field="notification-type",
            fix="Send CREATE, UPDATE, DROP or VALIDATE.",
        )


async def _load_file(
    catalog: OpenCatalog, caller: Caller, state: State, table: Identifier, told: Notification
) -> MetadataFile:
    await _require_newer(state, table, told)
    known = await find_table_ref(state, table)
    file = await load_registrable(catalog, caller, state, table, known, told.metadata_location)
    _check_uuid(file.metadata, told)
    return file


async def _register(
    catalog: OpenCatalog, caller: Caller, table: Identifier, told: Notification, file: MetadataFile
) -> None:
    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        await _require_newer(view, table, told)
        namespaces = await _make_namespaces(catalog, view, table)
        ref = await find_table_ref(view, table)
        registered = await prepare_registration(catalog, caller, view, table, ref, file)
        changes: dict[str, dict[bytes, bytes | None]] = {
            name: dict(entries) for name, entries in registered.changes.items()
        }
        changes[_INDEX] = _noted(table, told)
        for made in namespaces:
            changes["names"][made.key] = made.ref.pack()
            changes.setdefault("ids", {})[encode_id_key(made.ref.id)] = made.key
        return Prepared(
            None,
            changes,
            [*(made.new for made in namespaces), *registered.objects],
            [*(made.change for made in namespaces), *registered.feed],
        )

    await catalog.commit(caller, ops.SEND_NOTIFICATION, (catalog.target(),), prepare, NOTHING)


async def _drop(catalog: OpenCatalog, caller: Caller, table: Identifier, told: Notification) -> None:
    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        await _require_newer(view, table, told)
        ref = await find_table_ref(view, table)
        if ref is None:
            # Its creation may still be on the way, and must not be taken then.
            return Prepared(None, {_INDEX: _noted(table, told)})
        # Its files are its owner's, not ours to keep from anybody.
        dropped = await prepare_drop(catalog, caller, view, table, ref, is_given_up=True)
        changes = {**dropped.changes, _INDEX: _noted(table, told)}
        return Prepared(None, changes, dropped.objects, dropped.feed)

    await catalog.commit(caller, ops.SEND_NOTIFICATION, (catalog.target(),), prepare, NOTHING)


def _check_uuid(metadata: TableMetadata, told: Notification) -> None:
    if metadata.table_uuid.lower() != told.table_uuid.strip().lower():
        raise BadInput(
            "The metadata file is another table's",
            field="payload.table-uuid",
            fix="Send the UUID of the table whose metadata file is named.",
            told=told.table_uuid[:50],
            in_file=metadata.table_uuid,
        )


async def _require_newer(view: View, table: Identifier, told: Notification) -> None:
    last = await view.find(_INDEX, table_key(table))
    if last is not None and told.timestamp <= int.from_bytes(last, "big", signed=True):
        raise OutdatedNotification(str(table))


def _noted(table: Identifier, told: Notification) -> dict[bytes, bytes | None]:
    return {table_key(table): told.timestamp.to_bytes(_TIME_BYTES, "big", signed=True)}


class _Made(Struct, frozen=True):
    """A namespace that a notification needs."""

    key: bytes
    ref: ObjRef
    new: NewObject
    change: Change


async def _make_namespaces(catalog: OpenCatalog, view: View, table: Identifier) -> list[_Made]:
    persistence = catalog.shared.persistence
    made: list[_Made] = []
    for depth in range(1, len(table.namespace) + 1):
        path = table.namespace[:depth]
        key = namespace_key(path)
        if await view.find("names", key) is not None:
            continue
        now_us = persistence.clock.now_us()
        entity = NamespaceEntity(id=persistence.ids.next(), created_us=now_us, updated_us=now_us)
        ref = ObjRef(entity.id, NAMESPACE.name)
        detail = raw_detail({"id": entity.id, "path": path})
        change = Change(kind="namespace-created", index="names", key=key, after=ref.pack(), detail=detail)
        made.append(_Made(key, ref, NewObject(NAMESPACE, entity.id, entity), change))
    return made
