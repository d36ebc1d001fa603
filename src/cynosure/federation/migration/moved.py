"""What was moved before, told to whoever asks for it again: work that is done is no error.

Must not break: only what is written down counts. That the other catalog has a table of the same name says
nothing: it may be another one.
"""

from datetime import UTC, datetime
from typing import Final

from cynosure.catalog.names import Identifier, Namespace, path_of
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.federation.handover import (
    Chosen,
    Given,
    Moving,
    find_given,
    find_given_in,
    scan_given,
)
from cynosure.federation.migration.kinds import TABLES, VIEWS
from cynosure.federation.migration.steps import Line
from cynosure.federation.reconciling.drift import Kind
from cynosure.persistence.commit import State, View
from cynosure.persistence.index import encode_id_key

_KINDS: Final = (TABLES, VIEWS)
_SCANNED: Final = 500


async def tell_moved(
    state: State, taker: OpenCatalog, chosen: Chosen, token: str | None
) -> tuple[tuple[Line, ...], str | None]:
    """Lines of a page of what went into this other catalog before, and the token of the next."""
    try:
        behind = None if token is None else bytes.fromhex(token)
    except ValueError as error:
        raise BadInput("Not a page token", field="pageToken", fix="Pass it as it was given.") from error
    entries, there = await scan_given(state, behind, _SCANNED), await taker.read()
    lines = [
        await _tell(there, taker, kind, name, given)
        for _, (kind, name, given) in entries
        if given.taker == taker.entity.id and chosen.has(name)
    ]
    return tuple(lines), entries[-1][0].hex() if len(entries) == _SCANNED else None


async def tell_owned(state: State, moving: Moving, chosen: Chosen) -> tuple[Line, ...]:
    """Lines of the single tables and views that are asked for, in a catalog that was moved in place."""
    lines: list[Line] = []
    for *namespace, last in chosen.tables:
        name, path = Identifier(tuple(namespace), last), (*namespace, last)
        found = [kind for kind in _KINDS if await state.find("names", kind.key(name)) is not None]
        if found:
            lines.append(Line(found[0].kind, path, "there", _since(moving.begun_us)))
        elif path in moving.tables:
            reason = f"{_since(moving.begun_us)}; there is nothing of this name now"
            lines.append(Line("table", path, "gone", reason))
    return tuple(lines)


async def is_moved(view: View, taker: OpenCatalog, name: Identifier) -> bool:
    """Whether a table or view of this name went into that catalog before."""
    found = [await find_given(view, kind.kind, name) for kind in _KINDS]
    return any(each is not None and each.taker == taker.entity.id for each in found)


async def is_moved_from(view: View, taker: OpenCatalog, namespace: Namespace) -> bool:
    """Whether anything in a namespace did."""
    found = [given for kind in _KINDS for given in await find_given_in(view, kind.kind, namespace)]
    return any(each.taker == taker.entity.id for each in found)


async def _tell(there: State, taker: OpenCatalog, kind: Kind, name: Identifier, given: Given) -> Line:
    path, since = (*name.namespace, name.name), _since(given.given_us)
    key = await _find_key(there, kind, name, given)
    if key is None:
        return Line(kind, path, "gone", f"{since}; {taker.entity.name} has it no more")
    if path_of(key) != path:
        return Line(kind, path, "there", f"{since}; its name there is {'.'.join(path_of(key))}")
    return Line(kind, path, "there", since)


async def _find_key(there: State, kind: Kind, name: Identifier, given: Given) -> bytes | None:
    """Its key in `names` of the catalog that got it, whatever it is called there by now."""
    if given.id:
        return await there.find("ids", encode_id_key(given.id))
    key = (TABLES if kind == "table" else VIEWS).key(name)
    return key if await there.find("names", key) is not None else None


def _since(time_us: int) -> str:
    return f"moved on {datetime.fromtimestamp(time_us // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
