"""What a client's snapshot adds, and what of its manifests can be used."""

from typing import Any

import pytest
from msgspec.structs import replace
from pyiceberg import manifest as by_pyiceberg
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from cynosure.iceberg.appending.own_manifests import (
    NotAnAppend,
    added_entries,
    carried,
    find_difference,
    find_fault,
    find_own,
    needs_rewrite,
)
from cynosure.iceberg.appending.writing import manifest_kind
from cynosure.iceberg.manifests.content_file import Content, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.write_manifest import UNASSIGNED, write_manifest, write_manifest_list
from cynosure.iceberg.metadata import TableMetadata
from tests.iceberg.appending.samples import LOCATION, entry, read, read_open, table, write
from tests.iceberg.manifests.samples import MemoryFiles

OWN, OTHER = 9, 3


def line(name: str, snapshot_id: int = OWN, **changes: Any) -> ManifestFile:
    fields: dict[str, Any] = {
        "path": f"{LOCATION}/metadata/{name}.avro",
        "length": 1000,
        "spec_id": 0,
        "added_snapshot_id": snapshot_id,
        "sequence_number": 4,
        "min_sequence_number": 4,
        "added_files": 1,
        "existing_files": 0,
        "deleted_files": 0,
        "added_rows": 10,
        "existing_rows": 0,
        "deleted_rows": 0,
    }
    return ManifestFile(**fields | changes)


def reason(found: object) -> str:
    assert isinstance(found, NotAnAppend), found
    return found.reason


def test_own_manifests_are_those_the_snapshot_added() -> None:
    own = line("a"), line("b")
    assert find_own([own[0], line("x", OTHER), own[1]], OWN, spec_ids={0}) == own
    assert find_own([line("x", OTHER)], OWN, spec_ids={0}) == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"content": ManifestContent.DELETES}, "delete files"),
        ({"deleted_files": 1}, "removes"),
        ({"deleted_rows": 1}, "removes"),
        ({"key_metadata": b"k"}, "encrypted"),
        ({"spec_id": 5}, "spec"),
        ({"added_files": None}, "does not say"),
        ({"added_rows": None}, "does not say"),
    ],
)
def test_manifests_of_other_changes_are_no_append(changes: dict[str, Any], words: str) -> None:
    assert words in reason(find_own([line("a"), line("b", **changes)], OWN, spec_ids={0}))
    # The same in a manifest of an older snapshot is the table's own business.
    assert find_own([line("a"), line("b", OTHER, **changes)], OWN, spec_ids={0}) == (line("a"),)


def test_delete_files_that_were_only_merged_stay_where_they_are() -> None:
    parent = [line(name, OTHER, content=ManifestContent.DELETES) for name in "de"]
    merged = line("m", content=ManifestContent.DELETES, added_files=0, existing_files=2)
    listed = [line("a"), merged]
    assert find_own(listed, OWN, spec_ids={0}) == (line("a"),)
    assert find_difference(listed, parent, OWN) is None
    unsaid = replace(merged, added_files=None)
    assert "delete files" in reason(find_own([unsaid], OWN, spec_ids={0}))


def test_nothing_but_own_files_differs_from_the_parent() -> None:
    parent = [line("p", OTHER), line("q", OTHER, added_files=0, existing_files=3)]
    assert find_difference([line("a"), *parent], parent, OWN) is None
    # All of p and q merged into one manifest that adds a file too.
    merged = line("a", existing_files=4)
    assert find_difference([merged], parent, OWN) is None
    assert find_difference([line("a", existing_files=1), parent[1]], parent, OWN) is None


def test_files_left_out_or_taken_in_are_no_append() -> None:
    parent = [line("p", OTHER), line("q", OTHER, added_files=0, existing_files=3)]
    assert "leaves out" in reason(find_difference([line("a"), parent[0]], parent, OWN))
    assert "leaves out" in reason(find_difference([line("a", existing_files=3)], parent, OWN))
    assert "neither" in reason(find_difference([line("a"), *parent, line("z", 55)], parent, OWN))
    deletes = line("d", OTHER, content=ManifestContent.DELETES)
    assert "leaves out" in reason(find_difference([line("a")], [deletes], OWN))
    # A copy among data files is not the same.
    assert "leaves out" in reason(find_difference([line("a", existing_files=1)], [deletes], OWN))


def test_manifest_without_live_files_may_be_left_out() -> None:
    empty = line("e", OTHER, added_files=0, deleted_files=2)
    empty_deletes = replace(empty, content=ManifestContent.DELETES)
    assert find_difference([line("a")], [empty, empty_deletes], OWN) is None


def test_counts_that_a_list_lacks_do_not_matter() -> None:
    old = line("p", OTHER, added_files=None, existing_files=None)
    assert find_difference([line("a")], [old], OWN) is None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifest_of_new_files_is_used_as_it_is(version: int) -> None:
    metadata = table(version)
    data, made = write(metadata, "a", [entry("f", OWN), entry("g", OWN)], OWN)
    # As the client's list names it: with numbers of the state that the client saw.
    listed = replace(
        made, sequence_number=4, min_sequence_number=4, first_row_id=70 if version == 3 else None
    )
    manifest = read_open(metadata, data, listed)
    assert find_fault(manifest, OWN) is None
    assert not needs_rewrite(manifest, OWN, format_version=version)
    _, lines, next_id = write_manifest_list(
        [carried(listed)],
        format_version=version,
        snapshot_id=OWN,
        parent_snapshot_id=OTHER,
        sequence_number=8 if version > 1 else 0,
        next_row_id=500 if version == 3 else None,
    )
    again = read(metadata, data, lines[0])
    assert [*again.sequence_numbers] == [8 if version > 1 else 0] * 2
    assert [*again.first_row_ids] == ([500, 510] if version == 3 else [None, None])
    assert next_id == (520 if version == 3 else None)
    assert lines[0].min_sequence_number == (8 if version > 1 else 0)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_merged_manifest_keeps_only_what_is_new(version: int) -> None:
    """As Spark writes it: files of the table copied, the new one added."""
    metadata = table(version)
    old = None if version == 1 else 2
    entries = [
        entry("old", OTHER, Status.EXISTING, old, first_row_id=5 if version == 3 else None),
        entry("new", OWN),
    ]
    data, listed = write(metadata, "m", entries, OWN)
    manifest = read_open(metadata, data, replace(listed, sequence_number=4 if version > 1 else 0))
    assert find_fault(manifest, OWN) is None
    assert needs_rewrite(manifest, OWN, format_version=version)
    (kept,) = added_entries(manifest, OWN)
    assert kept == entry("new", OWN)
    _, rewritten = write(metadata, "r", [kept], OWN)
    assert (rewritten.added_files, rewritten.existing_files, rewritten.added_rows) == (1, 0, 10)


def write_by_pyiceberg(
    metadata: TableMetadata, entries: list[Entry], sequence_number: int
) -> tuple[bytes, ManifestFile]:
    """A manifest and its line, both as PyIceberg writes them."""
    files, version = MemoryFiles(), metadata.format_version
    schema = Schema.model_validate_json(metadata.current_schema_document().json)
    spec = PartitionSpec.model_validate_json(metadata.default_spec_document().json)
    with by_pyiceberg.write_manifest(version, spec, schema, files.new_output("m"), OWN, "deflate") as writer:
        for one in entries:
            file = by_pyiceberg.DataFile.from_args(
                content=by_pyiceberg.DataFileContent.DATA,
                file_path=one.file.path,
                file_format=by_pyiceberg.FileFormat.PARQUET,
                partition=Record(*one.file.partition),
                record_count=one.file.record_count,
                file_size_in_bytes=one.file.file_size_bytes,
            )
            writer.add_entry(
                by_pyiceberg.ManifestEntry.from_args(
                    status=by_pyiceberg.ManifestEntryStatus(one.status),
                    snapshot_id=one.snapshot_id,
                    sequence_number=one.sequence_number,
                    file_sequence_number=one.file_sequence_number,
                    data_file=file,
                )
            )
    with by_pyiceberg.write_manifest_list(
        version, files.new_output("list"), OWN, OTHER, sequence_number, "deflate"
    ) as lines:
        lines.add_manifests([writer.to_manifest_file()])
    (listed,) = read_manifest_list(files.files["list"], path="list").manifests
    return files.files["m"], listed


@pytest.mark.parametrize("version", [1, 2])
def test_manifests_that_pyiceberg_wrote(version: int) -> None:
    metadata = table(version)
    data, listed = write_by_pyiceberg(metadata, [entry("f", OWN), entry("g", OWN)], 4)
    assert find_own([listed], OWN, spec_ids={0}) == (listed,)
    manifest = read_open(metadata, data, listed)
    assert find_fault(manifest, OWN) is None
    assert not needs_rewrite(manifest, OWN, format_version=version, listed=listed)

    old = entry("old", OTHER, Status.EXISTING, None if version == 1 else 2)
    data, listed = write_by_pyiceberg(metadata, [old, entry("new", OWN)], 4)
    assert find_own([listed], OWN, spec_ids={0}) == (listed,)
    manifest = read_open(metadata, data, listed)
    assert find_fault(manifest, OWN) is None
    assert needs_rewrite(manifest, OWN, format_version=version, listed=listed)
    assert added_entries(manifest, OWN) == [entry("new", OWN)]


def test_number_that_the_client_wrote_does_not_stay() -> None:
    metadata = table(2)
    # The number of its own snapshot on the state that it saw: after others' commits it is too low.
    data, listed = write(metadata, "m", [entry("f", OWN, number=4), entry("g", OWN)], OWN)
    listed = replace(listed, sequence_number=4)
    manifest = read_open(metadata, data, listed)
    assert needs_rewrite(manifest, OWN, format_version=2)
    assert [one.sequence_number for one in added_entries(manifest, OWN)] == [None, None]


def test_file_sequence_number_alone_is_written_again() -> None:
    metadata = table(2)
    odd = Entry(Status.ADDED, OWN, None, 4, entry("f", OWN).file)
    data, listed = write(metadata, "m", [odd], OWN)
    assert needs_rewrite(read_open(metadata, data, listed), OWN, format_version=2)


def test_row_ids_that_the_client_wrote_do_not_stay() -> None:
    metadata = table(3)
    for given in (0, 70, 80):
        data, listed = write(metadata, "m", [entry("f", OWN), entry("g", OWN, first_row_id=given)], OWN)
        manifest = read_open(metadata, data, replace(listed, sequence_number=4, first_row_id=70))
        assert needs_rewrite(manifest, OWN, format_version=3)
        assert [one.file.first_row_id for one in added_entries(manifest, OWN)] == [None, None]


def test_manifest_of_another_version_is_written_again() -> None:
    old, new = table(1), table(2)
    data, listed = write(old, "m", [entry("f", OWN)], OWN)
    assert needs_rewrite(read_open(new, data, listed), OWN, format_version=2)
    data, listed = write(new, "m", [entry("f", OWN)], OWN)
    assert needs_rewrite(read_open(old, data, listed), OWN, format_version=1)
    # What version 3 adds is inherited, so a manifest of version 2 stays.
    assert not needs_rewrite(read_open(table(3), data, listed), OWN, format_version=3)


def test_manifest_whose_rows_are_counted_wrongly_is_written_again() -> None:
    metadata = table(3)
    data, listed = write(metadata, "m", [entry("f", OWN), entry("g", OWN)], OWN)
    manifest = read_open(metadata, data, listed)
    assert not needs_rewrite(manifest, OWN, format_version=3, listed=listed)
    for wrong in ({"added_rows": 3}, {"added_files": 1}):
        assert needs_rewrite(manifest, OWN, format_version=3, listed=replace(listed, **wrong))


def test_removed_file_is_no_append() -> None:
    metadata = table(2)
    data, listed = write(metadata, "m", [entry("f", OWN), entry("g", OWN, Status.DELETED, 2)], OWN)
    # A list that hides it does not help.
    hidden = replace(listed, deleted_files=0, deleted_rows=0)
    assert find_own([hidden], OWN, spec_ids={0}) == (hidden,)
    assert "removes" in reason(find_fault(read_open(metadata, data, hidden), OWN))


def test_delete_file_is_no_append() -> None:
    metadata = table(2)
    kind = replace(manifest_kind(metadata, 0), content=ManifestContent.DELETES)
    deletes = entry("d", OWN, content=Content.POSITION_DELETES)
    data, listed = write_manifest(kind, [deletes], path="s3://bucket/table/d.avro", snapshot_id=OWN)
    hidden = replace(listed, content=ManifestContent.DATA)
    assert "delete files" in reason(find_fault(read_open(metadata, data, hidden), OWN))


def test_file_that_another_snapshot_added_is_no_append() -> None:
    metadata = table(2)
    data, listed = write(metadata, "m", [entry("f", OWN), entry("g", OTHER, number=2)], OWN)
    assert "another snapshot" in reason(find_fault(read_open(metadata, data, listed), OWN))


def test_manifest_that_leaves_its_snapshot_open_is_used_as_it_is() -> None:
    metadata = table(2)
    open_entry = Entry(Status.ADDED, None, None, None, entry("f", OWN).file)
    data, listed = write(metadata, "m", [open_entry], 55)
    manifest = read_open(metadata, data, replace(listed, added_snapshot_id=OWN))
    assert find_fault(manifest, OWN) is None
    assert not needs_rewrite(manifest, OWN, format_version=2)


def test_carried_line_has_no_numbers_of_the_client() -> None:
    listed = carried(line("a", first_row_id=7))
    assert (listed.sequence_number, listed.min_sequence_number) == (UNASSIGNED, UNASSIGNED)
    assert listed.first_row_id is None
    data, lines, _ = write_manifest_list(
        [listed], format_version=2, snapshot_id=OWN, parent_snapshot_id=None, sequence_number=6
    )
    assert read_manifest_list(data, path="list").manifests == lines
    assert (lines[0].sequence_number, lines[0].min_sequence_number) == (6, 6)
