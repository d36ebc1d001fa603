"""Ends of a tombstone without a purge: the table is put back, under its name, with its id and its places.

Must not break: only a tombstone that is *restorable* is lifted, in a commit that expects it so. Whoever was
asked to purge it finds nothing then, whenever it comes.
"""

from dataclasses import replace
from enum import Enum, auto
from typing import TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.metrics import PURGES
from cynosure.catalog.purging.tombstone import (
    Tombstone,
    find_tombstone_of,
    leaving_trace,
    putting,
)
from cynosure.catalog.restoring import prepare_restore
from cynosure.common.errors import AlreadyExists, CorruptObject, NotFound
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key

R = TypeVar("R")
_log = Log(__name__)


class Lifted(Enum):
    """What became of an attempt to lift a tombstone."""

    BACK = auto()
    """The table is there again."""
    GIVEN_UP = auto()
    """Nothing will be purged, but the name is taken or the namespace gone: it waits to be restored."""
    PURGING = auto()
    """Too late: files may be gone."""
    ENDED = auto()
    """There is no such tombstone any more."""


async def lift(catalog: OpenCatalog, caller: Caller, tombstone: Tombstone, reason: str) -> Lifted:
    """Put the table of a tombstone back because its purge ended before it began."""

    async def prepare(view: View) -> Prepared[Lifted]:
        current = await find_tombstone_of(view, tombstone.entity_id, tombstone.drop_id)
        if current is None:
            return Prepared(Lifted.ENDED)
        if current.state == "purging":
            return Prepared(Lifted.PURGING)
        dropped = await find_object(view, "dropped", encode_id_key(current.drop_id), DROPPED)
        if dropped is None:
            raise CorruptObject("A tombstone has nothing that was dropped", drop=current.drop_id)
        try:
            restored = await prepare_restore(catalog, view, current.drop_id, dropped, dropped.path)
        except (AlreadyExists, NotFound, LocationRefused) as error:
            return _giving_up(catalog, current, f"{reason} It could not be put back: {error}")
        lifted = with_trace(catalog, restored, current.failed(reason))
        return Prepared(Lifted.BACK, lifted.changes, lifted.objects, lifted.feed)

    outcome = await commit_part(catalog.committer, caller, "lift-tombstone", prepare)
    if outcome is Lifted.BACK or not tombstone.is_given_up:
        # What waits for its name to be free is said once.
        if outcome in (Lifted.BACK, Lifted.GIVEN_UP):
            PURGES.inc(outcome="lifted" if outcome is Lifted.BACK else "given_up")
        _log.event("purge.lifted", level=WARNING, outcome=outcome.name, task=tombstone.task_id)
    return outcome


def with_trace(catalog: OpenCatalog, restored: Prepared[R], tombstone: Tombstone) -> Prepared[R]:
    """The change that restores a table, with its tombstone gone."""
    new, more = leaving_trace(tombstone, catalog.shared.persistence.ids.next())
    changes: Changes = {index: dict(entries) for index, entries in restored.changes.items()}
    merge(changes, more)
    return replace(restored, changes=changes, objects=[*restored.objects, new])


def _giving_up(catalog: OpenCatalog, current: Tombstone, error: str) -> Prepared[Lifted]:
    if current.is_given_up:
        return Prepared(Lifted.GIVEN_UP)
    new, changes = putting(current.failed(error, is_given_up=True), catalog.shared.persistence.ids.next())
    return Prepared(Lifted.GIVEN_UP, changes, [new])
