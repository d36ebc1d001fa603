"""Stray metadata files: those of commits that never came to be and whose server could not remove them.

The name of a file that this catalog wrote says for which state. A state that was committed is in the store
for as long as history is kept; one that was not never was there, or has been collected. So a file is stray
when its state is not in the store, and it is older than any commit may take but younger than what history
covers.

A *thorough* sweep lists everything below the catalog's base location and so also finds the files of tables
that were never created. The ordinary one looks into the directories of existing tables only, and leaves a
file alone whose number is above its table's: after the store was restored from a backup, such files are the
only trace of later commits.

Must not break: files that others wrote, and files of states that were committed, are never touched.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import NamedTuple

from msgspec import Struct, field

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.files.export import parse_file_name
from cynosure.catalog.locations import METADATA_PATH
from cynosure.catalog.managed.state import TABLE, TableState
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.progress import Progress, Report, ignore_progress
from cynosure.persistence.ids.snowflake import timestamp_us_of
from cynosure.persistence.index import after
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location

_PAGE = 500
_LISTED = 1_000


class Swept(Struct):
    """What a sweep did."""

    tables: int = 0
    """Tables and views whose directories were looked into; 0 for a thorough sweep."""
    files: int = 0
    """Metadata files of ours that were looked at."""
    strays: int = 0
    """Files of commits that never came to be: removed, unless it was a dry run."""
    locations: list[str] = field(default_factory=list)
    """The first thousand of them."""


class _Place(NamedTuple):
    directory: Location
    highest: int | None
    """Files with higher numbers are left alone."""


class _Candidate(NamedTuple):
    location: Location
    state_id: ObjId


async def sweep_strays(
    catalog: OpenCatalog,
    caller: Caller,
    *,
    grace: timedelta | None = None,
    is_thorough: bool = False,
    is_dry_run: bool = False,
    report: Report = ignore_progress,
) -> Swept:
    """Remove stray metadata files. `grace`: younger ones are left alone; by default that of collection."""
    await catalog.authorize(await catalog.read(), caller, ops.SWEEP_FILES, catalog.target())
    gc = catalog.shared.persistence.settings.gc
    now_us = catalog.shared.persistence.clock.now_us()
    newest_us = now_us - _us(gc.grace if grace is None else grace)
    oldest_us = now_us - _us(gc.history_retention)
    swept = Swept()
    places = _everything(catalog) if is_thorough else _directories(catalog, swept)
    candidates: list[_Candidate] = []
    async for place in places:
        async for info in catalog.files.list(place.directory):
            name = parse_file_name(catalog, info.location.segments[-1])
            if name is None:
                continue
            swept.files += 1
            is_dated = oldest_us < timestamp_us_of(name.state_id) < newest_us
            if is_dated and (place.highest is None or name.number <= place.highest):
                candidates.append(_Candidate(info.location, name.state_id))
        if len(candidates) >= _PAGE:
            await _remove_strays(catalog, candidates, swept, is_dry_run=is_dry_run)
            report(Progress("sweep", swept.files))
            candidates.clear()
    await _remove_strays(catalog, candidates, swept, is_dry_run=is_dry_run)
    report(Progress("sweep", swept.files))
    return swept


async def _everything(catalog: OpenCatalog) -> AsyncIterator[_Place]:
    yield _Place(catalog.base, None)


async def _directories(catalog: OpenCatalog, swept: Swept) -> AsyncIterator[_Place]:
    state = await catalog.read()
    start = b""
    while entries := await state.scan("names", start=start, limit=_PAGE):
        start = after(entries[-1][0])
        refs = [ObjRef.unpack(value) for _, value in entries]
        tables = await state.load_many(TABLE, [ref.id for ref in refs if ref.type == TABLE.name])
        views = await state.load_many(VIEW, [ref.id for ref in refs if ref.type == VIEW.name])
        for each in tables:
            yield _Place(_table_directory(each), each.file_number)
        for view in views:
            yield _Place(Location.parse(f"{view.location}/metadata"), view.file_number)
        swept.tables += len(tables) + len(views)


def _table_directory(table: TableState) -> Location:
    return Location.parse(table.properties.get(METADATA_PATH) or f"{table.location}/metadata")


async def _remove_strays(
    catalog: OpenCatalog, candidates: list[_Candidate], swept: Swept, *, is_dry_run: bool
) -> None:
    ids = [candidate.state_id for candidate in candidates]
    tables = await catalog.store.find_many(TABLE, ids)
    views = await catalog.store.find_many(VIEW, ids)
    strays = [
        candidate.location
        for candidate, table, view in zip(candidates, tables, views, strict=True)
        if table is None and view is None
    ]
    if strays and not is_dry_run:
        await catalog.files.delete_many(strays)
    swept.strays += len(strays)
    swept.locations += [location.text for location in strays][: _LISTED - len(swept.locations)]


def _us(span: timedelta) -> int:
    return int(span.total_seconds() * 1_000_000)
