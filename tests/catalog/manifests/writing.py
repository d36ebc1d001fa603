"""Manifests of a table in a catalog, as a client would write them, and a look at what is read of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.write_manifest import (
    ManifestKind,
    spec_fields_json,
    write_manifest,
    write_manifest_list,
)
from cynosure.iceberg.partitioning import partition_types
from cynosure.storage.fileio import READ_LIMIT_BYTES
from cynosure.storage.location import Location
from tests.catalog.tables import T


class WatchedFiles:
    """Files that say what was read of them, and wait while they are held."""

    def __init__(self, files: Any) -> None:
        self._files = files
        self.read_paths: list[str] = []
        self.now = self.most = 0
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.is_full = asyncio.Event()
        """Three are being read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        self.read_paths.append(location.text)
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == 3:
            self.is_full.set()
        try:
            await self.may_read.wait()
            data: bytes = await self._files.read(location, limit_bytes=limit_bytes)
        finally:
            self.now -= 1
        return data


def watch(catalog: OpenCatalog) -> WatchedFiles:
    files = WatchedFiles(catalog.files)
    catalog.storage = replace(catalog.storage, files=files)
    return files


async def load(catalog: OpenCatalog, table: Identifier = T) -> ManagedTable:
    view = await catalog.read()
    return await load_table_at(view, (await require_table_ref(view, table)).id, catalog.shared.tables)


async def open_files(catalog: OpenCatalog, table: Identifier = T) -> TableFiles:
    return TableFiles(catalog, await load(catalog, table))


def data_file(path: str, partition: tuple[Any, ...] = (), **more: Any) -> ContentFile:
    given = {"format": "parquet", "spec_id": 0, "record_count": 10, "file_size_bytes": 1000, **more}
    return ContentFile(path=path, partition=partition, **given)


class Writer:
    """Writes manifests where a table keeps them."""

    def __init__(self, catalog: OpenCatalog, table: ManagedTable) -> None:
        self._catalog = catalog
        self._metadata = table.metadata
        self.folder = f"{table.metadata.location}/metadata"

    def kind(self, *, spec_id: int = 0, content: ManifestContent = ManifestContent.DATA) -> ManifestKind:
        schema = self._metadata.current_schema_document()
        specs = (one.value for one in self._metadata.partition_specs)
        spec = next(one for one in specs if one.spec_id == spec_id)
        return ManifestKind(
            format_version=self._metadata.format_version,
            spec=spec,
            partition_types=partition_types(spec, schema.value),
            spec_json=spec_fields_json(spec),
            schema_json=schema.json,
            schema_id=schema.value.schema_id,
            content=content,
        )

    async def manifest(
        self,
        name: str,
        files: Sequence[ContentFile],
        *,
        status: Status = Status.ADDED,
        snapshot_id: int = 1,
        sequence_number: int | None = None,
        codec: str = "deflate",
    ) -> ManifestFile:
        is_deletes = any(one.content is not Content.DATA for one in files)
        kind = self.kind(spec_id=files[0].spec_id if files else 0, content=ManifestContent(is_deletes))
        path = f"{self.folder}/{name}.avro"
        entries = [Entry(status, snapshot_id, sequence_number, sequence_number, one) for one in files]
        data, listed = write_manifest(kind, entries, path=path, snapshot_id=snapshot_id, codec=codec)
        await self.put(path, data)
        if listed.sequence_number < 0:
            listed = replace(listed, sequence_number=1, min_sequence_number=1)
        return listed

    async def list(self, name: str, manifests: Sequence[ManifestFile], *, number: int = 1) -> str:
        data, _, _ = write_manifest_list(
            manifests,
            format_version=self._metadata.format_version,
            snapshot_id=number,
            parent_snapshot_id=None,
            sequence_number=number,
            next_row_id=0 if self._metadata.format_version > 2 else None,
        )
        path = f"{self.folder}/{name}.avro"
        await self.put(path, data)
        return path

    async def put(self, path: str, data: bytes) -> None:
        await self._catalog.files.write(Location.parse(path), data, overwrite=True)
