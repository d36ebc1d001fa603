"""Manifests of random tables with other paths: the same in all else, read by the ordinary reader."""

import pytest
from msgspec.structs import replace

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.repath import (
    PATH_COLUMN,
    POSITION_COLUMN,
    Remeasured,
    list_named_files,
    repath_manifest,
    repath_manifest_list,
)
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest
from cynosure.iceberg.partitioning import PartitionSpec
from tests.planning_oracle.history import RandomTable

HERE, THERE = "file:///here/table", "s3://there/another/place"


def rename(path: str) -> str:
    assert path.startswith(HERE)
    return path.replace(HERE, THERE, 1)


def moved(entry: Entry, rewritten: dict[str, Remeasured]) -> Entry:
    """What an entry has to say afterwards."""
    file = entry.file
    bounds = {}
    for name in ("lower_bounds", "upper_bounds"):
        found = getattr(file, name)
        if found and PATH_COLUMN in found:
            bounds[name] = {**found, PATH_COLUMN: rename(found[PATH_COLUMN].decode()).encode()}
    measured = rewritten.get(file.path)
    size = {} if measured is None else {"file_size_bytes": measured.size_bytes}
    referenced = file.referenced_data_file
    if referenced is not None:
        referenced = rename(referenced)
    changed = replace(file, path=rename(file.path), referenced_data_file=referenced, **bounds, **size)
    return replace(entry, file=changed)


@pytest.mark.parametrize("seed", range(40))
def test_only_paths_and_new_measures_change(seed: int) -> None:
    table = RandomTable(seed, HERE, is_plain=False)
    manifests: dict[str, tuple[str, int]] = {}
    for listed in {each.path: each for one in table.snapshots for each in one.manifests}.values():
        data = table.files[listed.path]
        named = list(list_named_files(data, path=listed.path))
        rewritten = {
            each.path: Remeasured(each.size_bytes + 9)
            for each in named
            if each.content is Content.POSITION_DELETES
        }

        changed = repath_manifest(data, path=listed.path, rename=rename, rewritten=rewritten)

        before = list(read_manifest(data, listed).entries())
        after = list(read_manifest(changed, replace(listed, path=rename(listed.path))).entries())
        # As text: a partition may be of what is not a number, and is not equal to itself.
        assert [repr(each) for each in after] == [repr(moved(each, rewritten)) for each in before]
        assert [each.path for each in named] == [each.file.path for each in before]
        assert HERE.encode() not in changed
        manifests[listed.path] = (rename(listed.path), len(changed))
    for snapshot in table.snapshots:
        data = table.files[snapshot.manifest_list]
        lines = read_manifest_list(data, path="x").manifests
        changed = repath_manifest_list(data, path="x", manifests=manifests)
        assert read_manifest_list(changed, path="x").manifests == tuple(at(each, manifests) for each in lines)


def at(line: ManifestFile, manifests: dict[str, tuple[str, int]]) -> ManifestFile:
    path, length = manifests[line.path]
    return replace(line, path=path, length=length)


def test_the_same_manifest_gives_the_same_bytes_again() -> None:
    table = RandomTable(3, HERE, is_plain=False)
    path = table.snapshots[-1].manifests[0].path
    first, second = (
        repath_manifest(table.files[path], path=path, rename=rename, rewritten={}) for _ in range(2)
    )
    assert first == second
    same = repath_manifest(table.files[path], path=path, rename=lambda each: each, rewritten={})
    assert same == table.files[path]


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_damaged_manifest_is_refused_with_its_path(cut: int) -> None:
    table = RandomTable(5, HERE, is_plain=False)
    listed = table.snapshots[-1].manifests[0]
    data = table.files[listed.path][:-cut]

    with pytest.raises(InvalidManifest) as refused:
        repath_manifest(data, path=listed.path, rename=rename, rewritten={})
    assert refused.value.field == listed.path
    with pytest.raises(InvalidManifest):
        list(list_named_files(data, path=listed.path))


@pytest.mark.parametrize("paths", [None, (f"{THERE}/a", f"{THERE}/b")])
def test_bounds_of_several_paths_are_those_that_were_measured_or_none(paths: tuple[str, str] | None) -> None:
    """They may be cut off in the middle, and half a path cannot be renamed."""
    file = ContentFile(
        path=f"{HERE}/deletes.parquet",
        format="parquet",
        spec_id=0,
        partition=(),
        record_count=2,
        file_size_bytes=100,
        content=Content.POSITION_DELETES,
        column_sizes={PATH_COLUMN: 60, POSITION_COLUMN: 30},
        lower_bounds={PATH_COLUMN: f"{HERE}/a".encode(), POSITION_COLUMN: b"\0" * 8},
        upper_bounds={PATH_COLUMN: f"{HERE}/b".encode(), POSITION_COLUMN: b"\1" * 8},
        split_offsets=(4,),
    )
    kind = ManifestKind(2, PartitionSpec((), 0), (), b"[]", b"{}", 0, ManifestContent.DELETES)
    entries = [Entry(Status.ADDED, 1, None, None, file)]
    data, listed = write_manifest(kind, entries, path="m", snapshot_id=1)
    measured = {file.path: Remeasured(70, {PATH_COLUMN: 40}, (5,), paths)} if paths else {}

    changed = repath_manifest(data, path="m", rename=rename, rewritten=measured)

    [found] = read_manifest(changed, replace(listed, sequence_number=1)).entries()
    bounds = [(found.file.lower_bounds or {}), (found.file.upper_bounds or {})]
    assert [each[POSITION_COLUMN] for each in bounds] == [b"\0" * 8, b"\1" * 8]
    assert [each.get(PATH_COLUMN, b"").decode() for each in bounds] == list(paths or ("", ""))
    if paths:
        assert (found.file.file_size_bytes, found.file.split_offsets) == (70, (5,))
        assert found.file.column_sizes == {PATH_COLUMN: 40}
