"""A catalog with any number of synthetic tables, made by bulk load, for suites that measure operations.

Every table is wholly in the store, as if it had been created and committed to: eight columns, a partition, a
few snapshots, a metadata log. Its metadata files do not exist; no operation reads them.

A maintainer must not break: what is measured afterwards is production code on an ordinary catalog; only the
way in is short.
"""

import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from benchmarks.suites.index import table_name
from cynosure.catalog.bulk_import import CatalogLoad, begin_load
from cynosure.catalog.managed.parts import Parts
from cynosure.catalog.managed.saving import pack_table
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.table_changes import TableChange
from cynosure.iceberg.create import new_table_metadata
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.metadata import TableMetadata, with_previous_file
from cynosure.iceberg.updates import TableUpdate, apply_updates
from cynosure.persistence.backends.sqlite.backend import SqliteBackend
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import Backend
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog

CATALOG = "lake"
_STORE, _FILES = "store.db", "files"
SNAPSHOTS = 4
_FILE_VERSIONS = 6
_CHANGED = 300
_NOW_MS = 1_900_000_000_000
_TYPES = ("long", "string", "timestamptz", "decimal(18,2)", "double", "string", "date", "boolean")
_decode_updates = msgspec.json.Decoder(list[TableUpdate]).decode


def make_schema() -> msgspec.Raw:
    """Eight columns."""
    fields = [
        {"id": at + 1, "name": f"column_{at}", "required": at == 0, "type": name}
        for at, name in enumerate(_TYPES)
    ]
    return msgspec.Raw(msgspec.json.encode({"type": "struct", "schema-id": 0, "fields": fields}))


def set_property(value: str) -> list[TableUpdate]:
    """The smallest change."""
    updates = [{"action": "set-properties", "updates": {"changed": value}}]
    return _decode_updates(msgspec.json.encode(updates))


def identifier_of(number: int, total: int) -> Identifier:
    """The name of one of `total` tables."""
    *namespace, name = table_name(number, total)
    return Identifier(tuple(namespace), name)


def _make_metadata() -> TableMetadata:
    """A table that has lived a little; all others differ from it in place and uuid."""
    limits = SizeLimits()
    spec = {"spec-id": 0, "fields": [{"source-id": 3, "field-id": 1000, "name": "day", "transform": "day"}]}
    metadata = new_table_metadata(
        schema=make_schema(),
        partition_spec=msgspec.Raw(msgspec.json.encode(spec)),
        sort_order=None,
        location="s3://lake/warehouse/table",
        properties={"owner": "analytics", "write.format.default": "parquet"},
        table_uuid=str(uuid.UUID(int=1)),
        now_ms=_NOW_MS,
        limits=limits,
    )
    for number in range(1, SNAPSHOTS + 1):
        snapshot = {
            "snapshot-id": 7_000_000_000_000_000_000 + number,
            "sequence-number": number,
            "timestamp-ms": _NOW_MS + number,
            "manifest-list": f"s3://lake/warehouse/table/metadata/snap-{number}.avro",
            "summary": {"operation": "append", "added-records": "1000", "total-records": str(1000 * number)},
            "schema-id": 0,
            **({"parent-snapshot-id": 7_000_000_000_000_000_000 + number - 1} if number > 1 else {}),
        }
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]}
        updates = [{"action": "add-snapshot", "snapshot": snapshot}, {"action": "set-snapshot-ref", **ref}]
        now_ms = _NOW_MS + number
        metadata = apply_updates(
            metadata, _decode_updates(msgspec.json.encode(updates)), now_ms=now_ms, limits=limits
        )
    for number in range(_FILE_VERSIONS):
        place = f"s3://lake/warehouse/table/metadata/{number:05d}-{uuid.UUID(int=number)}.metadata.json"
        metadata, _ = with_previous_file(metadata, place, _NOW_MS + number)
    return metadata


async def fill(catalog: OpenCatalog, folder: Path, total: int) -> None:
    """Put `total` synthetic tables into an empty catalog."""
    load: CatalogLoad = await begin_load(catalog, folder)
    pattern, chance = _make_metadata(), random.Random(total)
    ids, base = catalog.shared.persistence.ids, catalog.base
    now_us = catalog.shared.persistence.clock.now_us()
    for number in range(total):
        table = identifier_of(number, total)
        entity_id = load.next_id()
        location: Location = base.child(*table.namespace, table.name)
        unique = uuid.UUID(int=chance.getrandbits(128), version=4)
        _, objects = pack_table(
            msgspec.structs.replace(pattern, location=location.text, table_uuid=str(unique)),
            state_id=ids.next(),
            entity_id=entity_id,
            created_us=now_us,
            updated_us=now_us,
            metadata_location=f"{location.text}/metadata/{_FILE_VERSIONS:05d}-{unique}.metadata.json",
            file_number=_FILE_VERSIONS,
            stored=Parts(),
            next_id=ids.next,
        )
        await load.add(table, entity_id, location, objects)
    await load.commit(ROOT)


async def _use_a_little(catalog: OpenCatalog, total: int) -> None:
    """Create, rename and change, so that every index holds recent changes, as those of a used catalog do."""
    schema = make_schema()
    for number in range(_CHANGED):
        table = identifier_of(number % total, total)
        new = Identifier(table.namespace, f"created_{number}")
        await create_table(catalog, ROOT, CreateTable(new.namespace, new.name, schema))
        if number % 2:
            await rename_table(catalog, ROOT, new, Identifier(new.namespace, f"renamed_{number}"))
        await commit_table(catalog, ROOT, TableChange(table, [], set_property(str(number))))


@asynccontextmanager
async def open_filled(
    total: int, directory: str = "", *, backend_on: Callable[[Path], Backend] = SqliteBackend
) -> AsyncIterator[OpenCatalog]:
    """A catalog of `total` tables on SQLite. In `directory` it is kept: a million tables take minutes."""
    with TemporaryDirectory(prefix="cynosure-bench-") as temporary:
        folder = _folder(directory or temporary, total)
        if not _is_finished(folder):
            await _build(folder, total)
        async with (
            open_persistence_on(backend_on(folder / _STORE)) as persistence,
            directory_on(persistence, folder / _FILES) as opened,
        ):
            yield await opened.open(DEFAULT_REALM, CATALOG)


def _folder(directory: str, total: int) -> Path:
    return Path(directory).absolute() / f"catalog-{total}"


def _is_finished(folder: Path) -> bool:
    return (folder / "finished").exists()


async def _build(folder: Path, total: int) -> None:
    _clear(folder)
    files = folder / _FILES
    async with (
        open_persistence_on(SqliteBackend(folder / _STORE), initialise=True) as persistence,
        directory_on(persistence, files) as opened,
    ):
        catalog = await make_catalog(opened, files, CATALOG)
        with TemporaryDirectory(dir=folder) as sorting:
            await fill(catalog, Path(sorting), total)
        await _use_a_little(catalog, total)
    _finish(folder)


def _finish(folder: Path) -> None:
    (folder / "finished").touch()


def _clear(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_STORE}*"):
        left.unlink()
