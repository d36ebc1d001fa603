"""Operator commands on what was dropped: `tables.dropped`, `tables.restore`.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults.
"""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.auth.caller import Caller
from cynosure.catalog.dropped import DroppedEntity
from cynosure.catalog.errors import NoSuchDropped
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.common.progress import Report
from cynosure.persistence.spi import ObjId
from cynosure.server.catalog_commands import InRealm, OpenDirectory

_PAGE = 1_000


class DroppedParams(InRealm, frozen=True):
    """For `tables.dropped`."""

    catalog: str


class RestoreParams(InRealm, frozen=True):
    """For `tables.restore`."""

    catalog: str
    what: str
    """The id of a drop, or the dotted name of what was dropped: then the newest drop of it."""
    path: tuple[str, ...] = ()
    """Another place to restore to."""


class DroppedInfo(Struct, frozen=True):
    """Something that can be restored."""

    id: str
    kind: str
    path: tuple[str, ...]
    dropped_at: str
    principal: str


class RestoredInfo(Struct, frozen=True):
    """Something that was restored."""

    kind: str
    path: tuple[str, ...]


def undrop_commands(open_directory: OpenDirectory) -> list[OperatorCommand[Any]]:
    """The commands, on the catalogs that `open_directory` gives."""

    async def run_list(params: DroppedParams, report: Report) -> list[DroppedInfo]:
        async with open_directory(False) as directory:
            catalog = await directory.open(params.operator.realm, params.catalog)
            return [
                _info(drop_id, entity) for drop_id, entity in await _all_dropped(catalog, params.operator)
            ]

    async def run_restore(params: RestoreParams, report: Report) -> RestoredInfo:
        async with open_directory(False) as directory:
            catalog = await directory.open(params.operator.realm, params.catalog)
            drop_id = await _find(catalog, params)
            restored = await restore_dropped(catalog, params.operator, drop_id, path=params.path or None)
            return RestoredInfo(restored.kind, restored.path)

    return [
        OperatorCommand("tables.dropped", DroppedParams, run_list, "List what can be restored"),
        OperatorCommand("tables.restore", RestoreParams, run_restore, "Restore something dropped"),
    ]


async def _all_dropped(catalog: OpenCatalog, operator: Caller) -> list[tuple[ObjId, DroppedEntity]]:
    found: list[tuple[ObjId, DroppedEntity]] = []
    token: str | None = None
    while True:
        page = await list_dropped(catalog, operator, size=_PAGE, token=token)
        found += page.entries
        token = page.next_token
        if token is None:
            return found


async def _find(catalog: OpenCatalog, params: RestoreParams) -> ObjId:
    for drop_id, entity in reversed(await _all_dropped(catalog, params.operator)):
        if params.what in (str(drop_id), ".".join(entity.path)):
            return drop_id
    raise NoSuchDropped(params.what)


def _info(drop_id: ObjId, entity: DroppedEntity) -> DroppedInfo:
    moment = datetime.fromtimestamp(entity.dropped_us / 1_000_000, UTC).isoformat(timespec="seconds")
    return DroppedInfo(str(drop_id), entity.kind, entity.path, moment, entity.principal)
