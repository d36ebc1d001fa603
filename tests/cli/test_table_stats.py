"""`cynosure tables stats`."""

import json
from pathlib import Path

import msgspec
import pytest

from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.types import STRING
from cynosure.testing.metadata_files import write_metadata
from tests.cli.running import Cynosure

PLACE = ("--catalog", "lake", "--namespace", "sales")
FIELD = {"name": "day", "transform": "identity", "source-id": 1, "field-id": 1000}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "day", "required": False, "type": "string"}],
}


@pytest.fixture
def furnished(cynosure: Cynosure, tmp_path: Path) -> Cynosure:
    """With a table `orders` of two partitions and one `empty`, which are known by their metadata files."""
    assert cynosure("catalogs", "create", "lake").code == 0
    folder = tmp_path / "data" / "warehouse" / "lake"
    orders = write_metadata(folder / "orders", "1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c11", SCHEMA)
    empty = write_metadata(folder / "empty", "1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c12", SCHEMA)
    add_files(folder / "orders" / "metadata")
    tables = tmp_path / "tables.jsonl"
    lines = [
        {"namespace": ["sales"], "name": name, "metadata-location": file}
        for name, file in (("orders", orders), ("empty", empty))
    ]
    tables.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
    assert cynosure("tables", "import", "lake", str(tables)).code == 0
    return cynosure


def add_files(folder: Path) -> None:
    """A snapshot with three data files."""
    spec = PartitionSpec((PartitionField("day", "identity", source_id=1, field_id=1000),))
    kind = ManifestKind(
        2, spec, (STRING,), json.dumps([FIELD]).encode(), json.dumps(SCHEMA).encode(), 0, ManifestContent.DATA
    )
    entries = [
        Entry(
            Status.ADDED,
            5,
            None,
            None,
            ContentFile(
                path=f"{folder.as_uri()}/{size}",
                format="parquet",
                spec_id=0,
                partition=(day,),
                record_count=10,
                file_size_bytes=size,
            ),
        )
        for day, size in (("mon\x1b[2J", 2048), ("mon\x1b[2J", 1024), (None, 100))
    ]
    data, listed = write_manifest(kind, entries, path=f"{folder.as_uri()}/m.avro", snapshot_id=5)
    (folder / "m.avro").write_bytes(data)
    data, _, _ = write_manifest_list(
        [listed], format_version=2, snapshot_id=5, parent_snapshot_id=None, sequence_number=1
    )
    (folder / "l.avro").write_bytes(data)
    file = folder / "v1.metadata.json"
    snapshot = {
        "snapshot-id": 5,
        "sequence-number": 1,
        "timestamp-ms": 1,
        "manifest-list": f"{folder.as_uri()}/l.avro",
        "summary": {"operation": "append"},
    }
    more = {
        "last-sequence-number": 1,
        "partition-specs": [{"spec-id": 0, "fields": [FIELD]}],
        "last-partition-id": 1000,
        "snapshots": [snapshot],
        "current-snapshot-id": 5,
        "refs": {"main": {"snapshot-id": 5, "type": "branch"}},
    }
    file.write_text(json.dumps(json.loads(file.read_text()) | more))


def test_the_files_of_a_table_are_shown(furnished: Cynosure) -> None:
    shown = furnished("tables", "stats", "orders", *PLACE, "--branch", "main")

    assert shown.code == 0, shown.err
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "snapshot 5 of 1970-01-01T00:00:00+00:00" in lines
    assert "data files 3, 30 records, 3.1 KiB" in lines
    assert "file sizes min 100 B, median 1.0 KiB, p90 2.0 KiB, max 2.0 KiB" in lines
    assert "small files 3 (100%), below 384.0 MiB" in lines
    assert "deleted rows 0 by position (0.0%)" in lines
    assert "partitions 2" in lines
    assert "skew 30.72 times the median" in lines
    assert "PARTITION SPEC FILES RECORDS BYTES" in lines
    assert "day=mon\\x1b[2J 0 2 20 3.0 KiB" in lines
    assert "day=null 0 1 10 100 B" in lines


def test_json_is_the_server_s_answer(furnished: Cynosure) -> None:
    ended = furnished(
        "tables", "stats", "orders", *PLACE, "--snapshot-id", "5", "--partitions", "1", "--json"
    )

    assert ended.code == 0, ended.err
    found = msgspec.json.decode(ended.out)
    assert found["data"] == {"files": 3, "records": 30, "bytes": 3172}
    assert [one["files"] for one in found["partitions"]["largest"]] == [2]


def test_a_table_without_files_has_statistics_too(furnished: Cynosure) -> None:
    shown = furnished("tables", "stats", "empty", *PLACE)

    assert shown.code == 0, shown.err
    assert "none yet" in shown.out
    assert "PARTITION" not in shown.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--snapshot-id", "6"), "no such snapshot"),
        (("--branch", "nowhere"), "no such branch"),
        (("--branch", "main", "--snapshot-id", "5"), "--branch"),
    ],
)
def test_a_snapshot_that_is_not_there_is_told(
    furnished: Cynosure, options: tuple[str, ...], said: str
) -> None:
    ended = furnished("tables", "stats", "orders", *PLACE, *options)

    assert ended.code == 1
    assert said in ended.err
    assert "Fix:" in ended.err
