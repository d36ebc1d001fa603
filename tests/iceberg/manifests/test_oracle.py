"""What we write PyIceberg reads as the same files, and the other way round.

PyIceberg writes no format version 3, and reads of it what version 2 has.
"""

import random
from ctypes import c_float
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.manifest import read_manifest_list as read_list_by_pyiceberg
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from cynosure.iceberg.manifests import write_manifest as ours
from cynosure.iceberg.manifests.content_file import Content, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from tests.iceberg.manifests.samples import PHASES, SNAPSHOT, TYPES, MemoryFiles, entries, make_kind, plain

SEQUENCE = 9
LIST, MANIFEST = "memory://list.avro", "memory://manifest.avro"
METRICS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds")
METRICS += ("upper_bounds",)


def comparable(entry: Entry, *, version: int) -> dict[str, Any]:
    """An entry of ours as PyIceberg sees it."""
    file = entry.file
    return {
        "status": int(entry.status),
        "snapshot": entry.snapshot_id,
        "sequence": entry.sequence_number,
        "content": int(file.content),
        "path": file.path,
        "format": file.format.upper(),
        "partition": plain(file.partition),
        "records": file.record_count,
        "size": file.file_size_bytes,
        "key": file.key_metadata,
        "offsets": file.split_offsets,
        "ids": file.equality_ids if version > 1 else None,
        "order": file.sort_order_id,
        **{name: getattr(file, name) for name in METRICS},
    }


def seen_by_pyiceberg(entry: ManifestEntry) -> dict[str, Any]:
    file = entry.data_file
    return {
        "status": int(entry.status),
        "snapshot": entry.snapshot_id,
        "sequence": entry.sequence_number,
        "content": int(file.content or 0),
        "path": file.file_path,
        "format": file.file_format.value,
        "partition": plain(tuple(file.partition[at] for at in range(len(file.partition)))),
        "records": file.record_count,
        "size": file.file_size_in_bytes,
        "key": file.key_metadata,
        "offsets": None if file.split_offsets is None else tuple(file.split_offsets),
        "ids": None if file.equality_ids is None else tuple(file.equality_ids),
        "order": file.sort_order_id,
        **{name: None if (found := getattr(file, name)) is None else dict(found) for name in METRICS},
    }


def as_cython_reads(seen: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """PyIceberg 0.12's compiled decoder puts a double through a C float: compare what is left of it."""
    values = [float(c_float(one).value) if isinstance(one, float) else one for one in entry.file.partition]
    return {**seen, "partition": plain(values)}


def inherited(entry: Entry, version: int) -> Entry:
    """As a reader must see it."""
    number = entry.sequence_number
    if number is None:
        number = 0 if version == 1 else SEQUENCE
    return msgspec.structs.replace(entry, sequence_number=number)


@settings(max_examples=60, phases=PHASES)
@given(
    data=st.data(),
    version=st.sampled_from([1, 2, 3]),
    names=TYPES,
    codec=st.sampled_from(["null", "deflate"]),
)
def test_pyiceberg_reads_what_we_write(data: Any, version: int, names: list[str], codec: str) -> None:
    content = data.draw(st.sampled_from(Content)) if version > 1 else Content.DATA
    kind = make_kind(names, version=version, content=ManifestContent(min(1, content)))
    written = data.draw(st.lists(entries(names, version=version, content=content), min_size=1, max_size=5))

    manifest, listed = ours.write_manifest(kind, written, path=MANIFEST, snapshot_id=SNAPSHOT, codec=codec)
    list_, _, _ = ours.write_manifest_list(
        [listed],
        format_version=version,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=None,
        sequence_number=SEQUENCE,
    )
    io = MemoryFiles({MANIFEST: manifest, LIST: list_})
    (found,) = read_list_by_pyiceberg(io.new_input(LIST))

    read = found.fetch_manifest_entry(io, discard_deleted=False)
    assert [seen_by_pyiceberg(one) for one in read] == [
        as_cython_reads(comparable(inherited(one, version), version=version), one) for one in written
    ]
    assert found.added_files_count == sum(one.status is Status.ADDED for one in written)
    assert found.deleted_rows_count == sum(
        one.file.record_count for one in written if one.status is Status.DELETED
    )
    assert found.partition_spec_id == 3
    assert found.sequence_number == (0 if version == 1 else SEQUENCE)


@settings(max_examples=60, phases=PHASES)
@given(data=st.data(), version=st.sampled_from([1, 2, 3]), names=TYPES)
def test_we_read_what_we_write(data: Any, version: int, names: list[str]) -> None:
    content = data.draw(st.sampled_from(Content)) if version > 1 else Content.DATA
    kind = make_kind(names, version=version, content=ManifestContent(min(1, content)))
    written = data.draw(st.lists(entries(names, version=version, content=content), min_size=1, max_size=8))

    codec = data.draw(st.sampled_from(["null", "deflate", "zstandard"]))
    manifest, listed = ours.write_manifest(kind, written, path=MANIFEST, snapshot_id=SNAPSHOT, codec=codec)
    list_, (numbered,), next_row_id = ours.write_manifest_list(
        [listed],
        format_version=version,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=5,
        sequence_number=SEQUENCE,
        next_row_id=1000 if version > 2 else None,
    )
    (found,) = read_manifest_list(list_, path=LIST).manifests
    read = list(read_manifest(manifest, found).entries())

    assert found == numbered
    assert [comparable(one, version=version) for one in read] == [
        comparable(inherited(one, version), version=version) for one in written
    ]
    for one, other in zip(read, written, strict=True):
        assert one.file.referenced_data_file == other.file.referenced_data_file
        assert one.file.content_offset == other.file.content_offset
        assert one.file.content_size_bytes == other.file.content_size_bytes
    if version > 2 and content is Content.DATA:
        expected = 1000
        for one, other in zip(read, written, strict=True):
            if other.file.first_row_id is None and other.status is not Status.DELETED:
                assert one.file.first_row_id == expected
                expected += other.file.record_count
            else:
                assert one.file.first_row_id == other.file.first_row_id
        assert next_row_id == 1000 + (found.added_rows or 0) + (found.existing_rows or 0)


@settings(max_examples=40, phases=PHASES, deadline=None)
@given(data=st.data(), version=st.sampled_from([1, 2, 3]), names=TYPES, seed=st.integers(0, 99))
def test_many_files_are_read_as_few_are(data: Any, version: int, names: list[str], seed: int) -> None:
    """Enough of them that they are read by a pattern, most alike and some not."""
    kind = make_kind(names, version=version)
    common = data.draw(entries(names, version=version))
    others = data.draw(st.lists(entries(names, version=version), max_size=6))
    rng = random.Random(seed)
    written = [
        vary(common, rng) if rng.random() < 0.8 or not others else rng.choice(others) for _ in range(2500)
    ]

    manifest, listed = ours.write_manifest(kind, written, path=MANIFEST, snapshot_id=SNAPSHOT, codec="null")
    listed = msgspec.structs.replace(listed, sequence_number=SEQUENCE if version > 1 else 0)
    read = read_manifest(manifest, listed)

    assert [comparable(one, version=version) for one in read.entries()] == [
        comparable(inherited(one, version), version=version) for one in written
    ]


def vary(entry: Entry, rng: random.Random) -> Entry:
    """Another entry of the same shape."""

    def other(counts: dict[int, int] | None) -> dict[int, int] | None:
        return (
            None
            if counts is None
            else {id_: rng.choice([0, 7, 300, 2**40, file.record_count]) for id_ in counts}
        )

    file = msgspec.structs.replace(entry.file, record_count=rng.choice([1, 500, 70_000, 2**33]))
    file = msgspec.structs.replace(
        file,
        path=file.path + "x" * rng.randrange(8),
        file_size_bytes=rng.randrange(2**50),
        column_sizes=other(file.column_sizes),
        value_counts=other(file.value_counts),
        null_value_counts=other(file.null_value_counts),
        lower_bounds=file.lower_bounds and {id_: rng.randbytes(8) for id_ in file.lower_bounds},
        upper_bounds=file.upper_bounds
        and ({id_: bound for id_, bound in file.upper_bounds.items() if rng.random() < 0.7} or None),
    )
    return msgspec.structs.replace(entry, file=file)


@settings(max_examples=60, phases=PHASES)
@given(data=st.data(), version=st.sampled_from([1, 2]), names=TYPES)
def test_we_read_what_pyiceberg_writes(data: Any, version: Any, names: list[str]) -> None:
    kind = make_kind(names, version=version)
    given_entries = data.draw(st.lists(entries(names, version=version), min_size=1, max_size=5))
    io = MemoryFiles()
    schema = Schema.model_validate_json(kind.schema_json)
    spec = PartitionSpec.model_validate({"spec-id": 3, "fields": msgspec.json.decode(kind.spec_json)})
    with write_manifest(version, spec, schema, io.new_output(MANIFEST), SNAPSHOT, "deflate") as writer:
        for one in given_entries:
            writer.add_entry(to_pyiceberg(one))
    with write_manifest_list(
        version, io.new_output(LIST), SNAPSHOT, None, SEQUENCE, "deflate"
    ) as list_writer:
        list_writer.add_manifests([writer.to_manifest_file()])

    (found,) = read_manifest_list(io.files[LIST], path=LIST).manifests
    read = list(read_manifest(io.files[MANIFEST], found).entries())

    assert [comparable(one, version=version) for one in read] == [
        comparable(inherited(one, version), version=version) for one in given_entries
    ]
    theirs: ManifestFile = next(iter(read_list_by_pyiceberg(io.new_input(LIST))))
    assert [(one.contains_null, one.lower_bound, one.upper_bound) for one in found.partitions or ()] == [
        (one.contains_null, one.lower_bound, one.upper_bound) for one in theirs.partitions or ()
    ]


def to_pyiceberg(entry: Entry) -> ManifestEntry:
    file = entry.file
    return ManifestEntry.from_args(
        status=ManifestEntryStatus(entry.status),
        snapshot_id=entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=DataFile.from_args(
            content=DataFileContent(file.content),
            file_path=file.path,
            file_format=FileFormat(file.format.upper()),
            partition=Record(*file.partition),
            record_count=file.record_count,
            file_size_in_bytes=file.file_size_bytes,
            key_metadata=file.key_metadata,
            split_offsets=None if file.split_offsets is None else list(file.split_offsets),
            equality_ids=None,
            sort_order_id=file.sort_order_id,
            **{name: getattr(file, name) for name in METRICS},
        ),
    )


def test_a_snapshot_id_and_a_sequence_number_are_taken_from_the_list() -> None:
    kind = make_kind([])
    entry = Entry(Status.ADDED, None, None, None, make_file())

    manifest, listed = ours.write_manifest(kind, [entry], path=MANIFEST, snapshot_id=SNAPSHOT)
    _, (numbered,), _ = ours.write_manifest_list(
        [listed], format_version=2, snapshot_id=SNAPSHOT, parent_snapshot_id=None, sequence_number=SEQUENCE
    )

    read = read_manifest(manifest, numbered).entry(0)
    assert (read.snapshot_id, read.sequence_number, read.file_sequence_number) == (
        SNAPSHOT,
        SEQUENCE,
        SEQUENCE,
    )


def test_a_manifest_of_another_snapshot_keeps_its_numbers() -> None:
    _, listed = ours.write_manifest(
        make_kind([]), [Entry(Status.ADDED, 5, None, None, make_file())], path=MANIFEST, snapshot_id=5
    )

    with pytest.raises(Exception, match="has no sequence number"):
        ours.write_manifest_list(
            [listed], format_version=2, snapshot_id=6, parent_snapshot_id=5, sequence_number=SEQUENCE
        )


def make_file() -> Any:
    from cynosure.iceberg.manifests.content_file import ContentFile

    return ContentFile(
        path="s3://b/f.parquet", format="parquet", spec_id=3, partition=(), record_count=1, file_size_bytes=9
    )
