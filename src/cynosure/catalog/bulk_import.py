"""A whole catalog at once: millions of tables into an empty one, in a single commit.

Only names and places are taken over; a table's metadata file is read when the table is first loaded
(`TablePointer`). Namespaces are made as the tables need them.

Must not break: what one by one would be refused is refused here too: names, locations outside the catalog's,
names that are taken, locations that overlap. Nothing is visible before all of it is checked.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.entities import NAMESPACE, NamespaceEntity
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_references import is_inside_table
from cynosure.catalog.locations import check_allowed, location_key
from cynosure.catalog.managed.state import POINTER, TablePointer
from cynosure.catalog.names import (
    Identifier,
    Namespace,
    check_name,
    check_namespace,
    namespace_key,
    path_of,
    table_key,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput, CynosureError
from cynosure.common.progress import Progress, Report, ignore_progress
from cynosure.persistence.bulk import BulkCommit, begin_bulk
from cynosure.persistence.commit import Change
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import below, decode_key, encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.sorted_runs import SortedRuns
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject
from cynosure.storage.location import Location

_BATCH = 1_000
_REPORT_EVERY = 10_000
_REMEMBERED_NAMESPACES = 50_000


class ListedTable(Struct, frozen=True):
    """A table that exists somewhere, to be known here."""

    table: Identifier
    metadata_location: str
    location: str = ""
    """Empty: the directory above that of the metadata file."""


class Imported(Struct, frozen=True):
    """What an import made."""

    tables: int
    namespaces: int


async def import_tables(
    catalog: OpenCatalog, caller: Caller, tables: Iterable[ListedTable], *, report: Report = ignore_progress
) -> Imported:
    """Make these tables known in an empty catalog; `Conflict` when it is not empty."""
    await catalog.authorize(await catalog.read(), caller, ops.IMPORT_TABLES, catalog.target())
    with TemporaryDirectory(prefix="cynosure-import-") as folder:
        load = await begin_load(catalog, Path(folder), report)
        now_us = catalog.shared.persistence.clock.now_us()
        for listed in tables:
            try:
                await _add_pointer(catalog, load, listed, now_us)
            except CynosureError as error:
                error.details.setdefault("table", str(listed.table))
                raise
        # Again: reading them may have taken an hour.
        await catalog.authorize(await catalog.read(), caller, ops.IMPORT_TABLES, catalog.target())
        return await load.commit(caller)


async def _add_pointer(catalog: OpenCatalog, load: "CatalogLoad", listed: ListedTable, now_us: int) -> None:
    entity_id = load.next_id()
    file = check_allowed(catalog, listed.metadata_location, field="metadata-location")
    location = check_allowed(catalog, listed.location or _table_location(listed), field="location")
    # Nobody has read its properties yet, which may name other places: the first load looks at them.
    is_inside = is_inside_table(catalog, location, {}, listed.metadata_location)
    claims = () if is_inside else (file,)
    pointer = TablePointer(
        id=entity_id,
        created_us=now_us,
        metadata_location=listed.metadata_location,
        location=location.text,
        claims=tuple(each.text for each in claims),
    )
    # The first state has the stable id as its own, as that of a namespace has.
    new = NewObject(POINTER, entity_id, pointer)
    await load.add(listed.table, entity_id, location, [new], claims=claims)


def _table_location(listed: ListedTable) -> str:
    directory, slash, _ = listed.metadata_location.rpartition("/")
    if not (slash and directory.endswith("/metadata")):
        raise BadInput(
            "The table's location does not follow from its metadata file's",
            field="location",
            fix="Name the location: the file is not in a directory 'metadata' below it.",
            metadata_location=listed.metadata_location,
        )
    return directory.removesuffix("/metadata")


async def begin_load(catalog: OpenCatalog, folder: Path, report: Report = ignore_progress) -> "CatalogLoad":
    """Begin to fill an empty catalog; `folder` takes what is to be sorted."""
    return CatalogLoad(
        catalog, await begin_bulk(catalog.shared.persistence, catalog.committer.key), folder, report
    )


class CatalogLoad:
    """An empty catalog being filled, with tables in any order."""

    def __init__(self, catalog: OpenCatalog, bulk: BulkCommit, folder: Path, report: Report) -> None:
        self._persistence = catalog.shared.persistence
        self._bulk = bulk
        self._report = report
        self._names = SortedRuns(folder, "names")
        self._locations = SortedRuns(folder, "locations")
        self._namespaces = SortedRuns(folder, "namespaces")
        self._seen: set[Namespace] = set()
        self._ids: list[tuple[bytes, bytes]] = []

    def next_id(self) -> ObjId:
        """A stable id for the table that is added next: they must be added in the order of their ids."""
        return self._persistence.ids.next()

    async def add(
        self,
        table: Identifier,
        entity_id: ObjId,
        location: Location,
        objects: list[NewObject],
        *,
        claims: Sequence[Location] = (),
    ) -> None:
        """Take one table; the last of `objects` is its state, `claims` what it holds besides its location."""
        check_name(table.name, field="name")
        self._note_namespace(table.namespace)
        key, owner = table_key(table), encode_id_key(entity_id)
        self._names.add(key, ObjRef(objects[-1].id, objects[-1].type.name).pack())
        for place in (location, *claims):
            self._locations.add(location_key(place), owner)
        self._ids.append((owner, key))
        await self._bulk.write(objects)
        if len(self._ids) >= _BATCH:
            await self._flush_ids()
        if self._names.count % _REPORT_EVERY == 0:
            self._report(Progress("tables read", self._names.count))

    async def commit(self, caller: Caller) -> Imported:
        """Sort, check and commit everything."""
        await self._flush_ids()
        namespaces = await self._make_namespaces()
        await self._feed("names", _without_repeats(self._names.read()))
        await self._feed("locations", _without_overlaps(self._locations.read()))
        imported = Imported(self._names.count, namespaces)
        # One line for all: a feed with a line for each would not fit into a commit.
        told = Change(
            kind="tables-imported",
            index="names",
            key=b"",
            detail=raw_detail({"tables": imported.tables, "namespaces": imported.namespaces}),
        )
        await self._bulk.commit(caller.principal, "import-tables", [told])
        return imported

    def _note_namespace(self, namespace: Namespace) -> None:
        if namespace in self._seen:
            return
        check_namespace(namespace)
        if len(self._seen) >= _REMEMBERED_NAMESPACES:
            self._seen.clear()  # Those named again are sorted out when they are made.
        self._seen.add(namespace)
        for length in range(1, len(namespace) + 1):
            self._namespaces.add(namespace_key(namespace[:length]))

    async def _make_namespaces(self) -> int:
        now_us = self._persistence.clock.now_us()
        made = 0
        last = b""
        for key, _ in self._namespaces.read():
            if key == last:
                continue
            last = key
            entity = NamespaceEntity(id=self.next_id(), created_us=now_us, updated_us=now_us)
            await self._bulk.write([NewObject(NAMESPACE, entity.id, entity)])
            # In order: keys of namespaces sort before those of tables, and these ids are the newest.
            await self._bulk.feed("names", [(key, ObjRef(entity.id, NAMESPACE.name).pack())])
            await self._bulk.feed("ids", [(encode_id_key(entity.id), key)])
            made += 1
        return made

    async def _flush_ids(self) -> None:
        entries, self._ids = self._ids, []
        await self._bulk.feed("ids", entries)
        await asyncio.sleep(0)  # Others want to be served meanwhile.

    async def _feed(self, index: str, entries: Iterator[tuple[bytes, bytes]]) -> None:
        done = 0
        while batch := list(islice(entries, _BATCH)):
            await self._bulk.feed(index, batch)
            done += len(batch)
            if done % _REPORT_EVERY == 0:
                self._report(Progress(f"{index} indexed", done, self._names.count))
            await asyncio.sleep(0)


def _without_repeats(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    last = b""
    for key, value in entries:
        if key == last:
            raise BadInput(
                "A table is listed twice",
                field="name",
                fix="Name every table once.",
                table=".".join(path_of(key)),
            )
        last = key
        yield key, value


def _without_overlaps(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    last = inside = b"\xff"
    for key, owner in entries:
        # A place sorts right before all that is inside it.
        if key == last or key.startswith(inside):
            raise LocationRefused(
                "The locations of two tables overlap",
                fix="Give every table a location of its own, not inside another's.",
                field="location",
                location="/".join(decode_key(key)),
                other="/".join(decode_key(last)),
            )
        last, inside = key, below(key)
        yield key, owner
