"""Heads of other references that prepared work relied on, asked for again in the commit phase.

Must not break: they are read from the database, and after what they guard was prepared.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from cynosure.common.errors import CynosureError
from cynosure.persistence.commit.entry import Entry
from cynosure.persistence.heads import Heads


async def split_by_guards(entries: Sequence[Entry], heads: Heads) -> tuple[list[Entry], list[Entry]]:
    """Those whose guards hold, if need be decided anew, and those that must be prepared again."""
    keys = sorted({key for entry in entries if entry.prepared for key in entry.prepared.guards})
    if not keys:
        return list(entries), []
    found = await asyncio.gather(*(heads.find(key, is_fresh=True) for key in keys))
    now = {ref.key: ref.head for ref in found if ref is not None}
    holding: list[Entry] = []
    moved: list[Entry] = []
    for entry in entries:
        guards = entry.prepared.guards if entry.prepared else {}
        is_current = all(now.get(key) == head for key, head in guards.items())
        (holding if is_current or await _is_renewed(entry) else moved).append(entry)
    return holding, moved


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
