"""Restore something dropped: the same id, the same state, and so the same history and grants.

Must not break: a table whose purge has begun is not restored, and one whose purge has not begun loses its
tombstone in the same commit: from then on nothing of it may be deleted.
"""

from typing import Final

from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall, Sealed
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.errors import NoSuchDropped
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purge_errors import PurgeConflict
from cynosure.catalog.purging.lifting import with_trace
from cynosure.catalog.purging.tombstone import Tombstone, find_tombstone_of
from cynosure.catalog.resolve import require_open
from cynosure.catalog.restoring import prepare_restore
from cynosure.common.errors import Expired
from cynosure.common.quantities import format_duration
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_RECALL: Final[Recall[DroppedEntity]] = Sealed(DroppedEntity)


async def restore_dropped(
    catalog: OpenCatalog, caller: Caller, drop_id: ObjId, *, path: tuple[str, ...] | None = None
) -> DroppedEntity:
    """Restore it, under the path it had or another; what was restored, with the path it has now.

    Its namespace must exist, its name and location must be free.
    """

    async def prepare(view: View) -> Prepared[DroppedEntity]:
        await require_open(view)
        value = await view.find("dropped", encode_id_key(drop_id))
        if value is None:
            raise NoSuchDropped(str(drop_id))
        dropped = (await view.load_many(DROPPED, [ObjRef.unpack(value).id]))[0]
        tombstone = await find_tombstone_of(view, dropped.entity_id, drop_id)
        if tombstone is None:
            _require_in_window(catalog, dropped)
        else:
            _require_restorable(tombstone)
        restored = await prepare_restore(catalog, view, drop_id, dropped, path or dropped.path)
        if tombstone is None:
            return restored
        reason = f"It was restored by {caller.principal}."
        return with_trace(catalog, restored, replace(tombstone, last_error=reason))

    target = catalog.target()
    return (await catalog.commit(caller, ops.RESTORE_DROPPED, (target,), prepare, _RECALL)).result


def _require_restorable(tombstone: Tombstone) -> None:
    if tombstone.state == "purging":
        raise PurgeConflict(
            "Its files are being deleted: it cannot be restored any more",
            fix=f"See how far that is with 'cynosure tasks show {tombstone.task_id}'.",
            task=tombstone.task_id,
        )


def _require_in_window(catalog: OpenCatalog, dropped: DroppedEntity) -> None:
    if dropped.dropped_us < catalog.dropped_since_us():
        window = catalog.shared.persistence.settings.gc.undrop_window
        raise Expired(
            "It was dropped too long ago to be restored",
            fix="Register its metadata file, if its files are still there.",
            window=format_duration(window),
        )
