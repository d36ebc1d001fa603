"""Iceberg itself reads the manifests that we write, and we read those that it writes.

Partition values of type `fixed` are left out: Iceberg 1.11 and 1.12 do not read them from a manifest.
"""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.content_file_json import BoundForm, JsonTypes, file_from_json
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.repath import repath_manifest, repath_manifest_list
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from tests.engines.java import SHORT_LIVED, find_java, run_tool
from tests.engines.rck.build import build_class_path
from tests.iceberg.manifests.samples import SNAPSHOT, long_bound, make_kind, make_schema

VALUES = {
    "boolean": True,
    "int": 5,
    "long": -(2**40),
    "float": 1.5,
    "double": -2.25,
    "date": 19_000,
    "time": 3_600_000_001,
    "timestamp": 10**15,
    "timestamptz": -(10**15) + 1,
    "string": "ünï x",
    "uuid": UUID(int=5),
    "binary": b"\x00\xff",
    "decimal(9, 2)": Decimal("-12.34"),
    "decimal(38, 10)": Decimal("1234567.0123456789"),
}
NAMES = list(VALUES)
REFERENCED = "file:///data/1.parquet"


def make_file(number: int, content: Content = Content.DATA, **more: Any) -> ContentFile:
    # Every value is missing in some file.
    partition = [None if at % 5 == number % 5 else value for at, value in enumerate(VALUES.values())]
    return ContentFile(
        **{"format": "parquet", **more},
        path=f"file:///data/{number}.parquet",
        spec_id=3,
        partition=tuple(partition),
        record_count=10 + number,
        file_size_bytes=1000,
        content=content,
        column_sizes={1: 5, 2: 6},
        value_counts={1: 10, 3: 10, 5: 10},
        null_value_counts={1: 0},
        nan_value_counts={5: 1},
        lower_bounds={3: long_bound(4), 10: b"abc"},
        upper_bounds={3: long_bound(9)},
        split_offsets=(4, 500),
        sort_order_id=0,
    )


def make_entries(version: int) -> dict[ManifestContent, list[Entry]]:
    added = [Entry(Status.ADDED, SNAPSHOT, None, None, make_file(number)) for number in range(3)]
    if version == 1:
        return {ManifestContent.DATA: [*added, Entry(Status.EXISTING, 5, None, None, make_file(7))]}
    older = [
        Entry(Status.EXISTING, 5, 3, 3, make_file(7)),
        Entry(Status.DELETED, SNAPSHOT, 2, 2, make_file(8)),
    ]
    position: dict[str, Any] = {"referenced_data_file": REFERENCED}
    if version == 3:
        position |= {"format": "puffin", "content_offset": 4, "content_size_bytes": 99}
    deletes = [
        make_file(20, Content.EQUALITY_DELETES, equality_ids=(1, 2)),
        make_file(21, Content.POSITION_DELETES, **position),
    ]
    return {
        ManifestContent.DATA: [*added, *older],
        ManifestContent.DELETES: [Entry(Status.ADDED, SNAPSHOT, None, None, file) for file in deletes],
    }


@pytest.mark.parametrize("version", [1, 2, 3])
def test_iceberg_and_we_read_the_same_in_each_others_manifests(version: int, tmp_path: Path) -> None:
    kinds = {content: make_kind(NAMES, version=version, content=content) for content in ManifestContent}
    ours = write_table(tmp_path, version, kinds)

    told = exchange(version, tmp_path)

    kind = kinds[ManifestContent.DATA]
    types = JsonTypes({3: kind.partition_types}, make_schema(NAMES).find_type, BoundForm.BINARY)
    lines = [line for line in told.splitlines() if line.startswith("entry ")]  # logs are among them
    for line, entry in zip(lines, ours, strict=True):
        _, status, snapshot_id, sequence_number, file_sequence_number, document = line.split(" ", 5)
        assert Status[status] is entry.status
        assert int(snapshot_id) == entry.snapshot_id
        assert (int(sequence_number), int(file_sequence_number)) == (
            entry.sequence_number,
            entry.file_sequence_number,
        )
        assert file_from_json(json.loads(document), types, field="file") == entry.file

    (listed,) = read_manifest_list((tmp_path / "java-list.avro").read_bytes(), path="list").manifests
    back = read_manifest((tmp_path / "java-manifest.avro").read_bytes(), listed)
    data = [entry.file for entry in ours if entry.file.content is Content.DATA]
    assert [replace(entry.file, first_row_id=None) for entry in back.entries()] == [
        replace(file, first_row_id=None) for file in data
    ]
    assert back.first_row_ids[0] == (500 if version == 3 else None)
    assert {*back.statuses} == {Status.ADDED}
    assert_moves(tmp_path, listed, data)


def assert_moves(folder: Path, listed: ManifestFile, data: list[ContentFile]) -> None:
    """What Iceberg wrote is written again for files that are elsewhere."""
    lines, manifest = ((folder / f"java-{name}.avro").read_bytes() for name in ("list", "manifest"))

    def rename(path: str) -> str:
        return path.replace("file:///data", "s3://elsewhere")

    changed = repath_manifest(manifest, path="manifest", rename=rename, rewritten={})
    (there,) = read_manifest_list(
        repath_manifest_list(lines, path="list", manifests={listed.path: ("m", len(changed))}), path="list"
    ).manifests
    assert there == replace(listed, path="m", length=len(changed))
    found = [replace(entry.file, first_row_id=None) for entry in read_manifest(changed, there).entries()]
    assert found == [replace(each, path=rename(each.path), first_row_id=None) for each in data]


def write_table(folder: Path, version: int, kinds: dict[ManifestContent, ManifestKind]) -> list[Entry]:
    """Write everything that Java is to read; give what it must find."""
    written = []
    for content, entries in make_entries(version).items():
        path = folder / f"{content.name}.avro"
        data, listed = write_manifest(kinds[content], entries, path=str(path), snapshot_id=SNAPSHOT)
        path.write_bytes(data)
        written.append(listed)
    list_, numbered, _ = write_manifest_list(
        written,
        format_version=version,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=None,
        sequence_number=9,
        next_row_id=1000 if version == 3 else None,
    )
    kind = kinds[ManifestContent.DATA]
    (folder / "list.avro").write_bytes(list_)
    (folder / "schema.json").write_bytes(kind.schema_json)
    (folder / "spec.json").write_bytes(b'{"spec-id":3,"fields":%b}' % kind.spec_json)
    return [entry for one in numbered for entry in read_manifest(Path(one.path).read_bytes(), one).entries()]


def exchange(version: int, folder: Path) -> str:
    """What Iceberg reads from the folder's list."""
    command = [find_java(), *SHORT_LIVED, "-cp", build_class_path(), "org.apache.iceberg.ManifestExchange"]
    return run_tool([*command, str(version), str(folder)])
