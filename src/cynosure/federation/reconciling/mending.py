"""The mirror brought in line with what a remote said.

A maintainer must not break: nothing is given up but on the remote's own word that it has it no more; what
could not be mended stays as it is, and is told; and what somebody saw since the remote was asked stays, too.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import CynosureError, Unavailable
from cynosure.federation.errors import NotShown
from cynosure.federation.mirror import (
    backfill_namespace,
    backfill_table,
    backfill_view,
    forget_namespace,
    forget_table,
    forget_view,
    move_table,
    move_view,
)
from cynosure.federation.mirror.seen import Seen, SeenMeanwhile
from cynosure.federation.reconciling.drift import Difference
from cynosure.federation.reconciling.looking import Entry, Look
from cynosure.federation.reconciling.moves import Moved


async def mend(
    catalog: OpenCatalog, caller: Caller, look: Look, moved: Moved | None
) -> tuple[Difference | None, bool]:
    """What is wrong with an entry, as far as is known behind this, and whether it was mended."""
    try:
        if moved is not None:
            await _follow(catalog, caller, look.entry, moved)
        elif look.difference == "gone":
            await _forget(catalog, caller, look.entry)
        elif look.difference in ("changed", "re-created"):
            await _take_in(catalog, caller, look)
        else:
            return look.difference, False
    except NotShown:
        return "not-shown", False
    except SeenMeanwhile:
        # Somebody has looked after it since.
        return look.difference, False
    except Unavailable:
        raise
    except CynosureError:
        # It cannot be taken in: the next run tells.
        return look.difference, False
    return look.difference, True


async def _follow(catalog: OpenCatalog, caller: Caller, entry: Entry, moved: Moved) -> None:
    target, expected = Identifier(moved.path[:-1], moved.path[-1]), _after_move(entry.seen)
    if moved.table is not None:
        await move_table(catalog, caller, entry.name, target, moved.uuid)
        await backfill_table(catalog, caller, target, moved.table, expected=expected)
    elif moved.view is not None:
        await move_view(catalog, caller, entry.name, target, moved.uuid)
        await backfill_view(catalog, caller, target, moved.view, expected=expected)


def _after_move(seen: Seen | None) -> Seen | None:
    """What the mirror has under the new name when a move is done. What is granted by name stays behind."""
    if seen is None or seen.is_by_name:
        return None
    return Seen(seen.tag, seen.uuid, seen.seen_us)


async def _forget(catalog: OpenCatalog, caller: Caller, entry: Entry) -> None:
    if entry.kind == "namespace":
        await forget_namespace(catalog, caller, entry.path)
    elif entry.kind == "table":
        # Only what the remote was asked about: seen again meanwhile, it stays.
        await forget_table(catalog, caller, entry.name, expected=entry.seen)
    else:
        await forget_view(catalog, caller, entry.name, expected=entry.seen)


async def _take_in(catalog: OpenCatalog, caller: Caller, look: Look) -> None:
    entry = look.entry
    if look.table is not None:
        await backfill_table(catalog, caller, entry.name, look.table, expected=entry.seen)
    elif look.view is not None:
        await backfill_view(catalog, caller, entry.name, look.view, expected=entry.seen)
    elif look.properties is not None:
        await backfill_namespace(catalog, caller, entry.path, look.properties)
