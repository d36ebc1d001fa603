"""Heads of other references that prepared work relied on, asked for again in the commit phase.

Must not break: they are read from the database, and after what they guard was prepared.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from cynosure.common.errors import CynosureError
from cynosure.persistence.commit.entry import Entry
from cynosure.persistence.heads import Heads


async def split_by_guards(
    entries: Sequence[Entry], heads: Heads, *, patience_s: float
) -> tuple[list[Entry], list[Entry]]:
    """Those whose guards hold, if need be decided anew, and those that must be prepared again.

    What takes longer than `patience_s` to decide is prepared again, outside: the others do not wait for it.
    """
    keys = sorted({key for entry in entries if entry.prepared for key in entry.prepared.guards})
    if not keys:
        return list(entries), []
    found = await asyncio.gather(*(heads.find(key, is_fresh=True) for key in keys))
    now = {ref.key: ref.head for ref in found if ref is not None}
    renewing: dict[int, asyncio.Task[bool]] = {}
    for at, entry in enumerate(entries):
        guards = entry.prepared.guards if entry.prepared else {}
        if any(now.get(key) != head for key, head in guards.items()):
            renewing[at] = asyncio.create_task(_is_renewed(entry))
    if renewing:
        _, late = await asyncio.wait(renewing.values(), timeout=patience_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    moved = {at for at, task in renewing.items() if task.cancelled() or not task.result()}
    return (
        [entry for at, entry in enumerate(entries) if at not in moved],
        [entry for at, entry in enumerate(entries) if at in moved],
    )


async def _is_renewed(entry: Entry) -> bool:
    """Whether what an entry relied on still holds, at the heads of now."""
    prepared = entry.prepared
    if prepared is None or prepared.renew is None:
        return False
    try:
        guards = await prepared.renew()
    except CynosureError:
        # Prepared again, it is refused with the reason.
        return False
    entry.prepared = replace(prepared, guards=guards)
    return True
