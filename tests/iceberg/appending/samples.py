"""Tables, manifests and lists of appends that the tests of this room share."""

from collections.abc import Sequence
from typing import Any

from cynosure.iceberg.appending.own_manifests import opened
from cynosure.iceberg.appending.writing import find_spec, manifest_kind, spec_types
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import write_manifest
from cynosure.iceberg.metadata import TableMetadata
from tests.iceberg.samples import add, new_table, set_ref, snapshot, update

LOCATION = "s3://bucket/table"
SPEC = {"spec-id": 0, "fields": [{"name": "id", "transform": "identity", "source-id": 1}]}


def table(version: int = 2, *, heads: Sequence[int] = (), **changes: Any) -> TableMetadata:
    """A table partitioned by id, with snapshots on main."""
    properties = {"format-version": str(version), **changes.pop("properties", {})}
    made = new_table(partition_spec=SPEC, properties=properties, **changes)
    for id_ in heads:
        made = update(made, add(snapshot(made, id_)), set_ref("main", id_))
    return made


def data_file(name: str, **changes: Any) -> ContentFile:
    fields: dict[str, Any] = {
        "path": f"{LOCATION}/data/{name}.parquet",
        "format": "parquet",
        "spec_id": 0,
        "partition": (1,),
        "record_count": 10,
        "file_size_bytes": 100,
    }
    return ContentFile(**fields | changes)


def entry(
    name: str, snapshot_id: int, status: Status = Status.ADDED, number: int | None = None, **changes: Any
) -> Entry:
    return Entry(status, snapshot_id, number, number, data_file(name, **changes))


def write(
    metadata: TableMetadata, name: str, entries: Sequence[Entry], snapshot_id: int
) -> tuple[bytes, ManifestFile]:
    """A manifest as a client or this catalog writes it."""
    return write_manifest(
        manifest_kind(metadata, entries[0].file.spec_id if entries else 0),
        entries,
        path=f"{LOCATION}/metadata/{name}.avro",
        snapshot_id=snapshot_id,
    )


def read(metadata: TableMetadata, data: bytes, listed: ManifestFile) -> Manifest:
    spec = find_spec(metadata, listed.spec_id)
    assert spec is not None
    ids = [field.field_id or 0 for field in spec.fields]
    fields = tuple(zip(ids, spec_types(metadata, spec), strict=True))
    return read_manifest(data, listed, partition=fields)


def read_open(metadata: TableMetadata, data: bytes, listed: ManifestFile) -> Manifest:
    return read(metadata, data, opened(listed, format_version=metadata.format_version))
