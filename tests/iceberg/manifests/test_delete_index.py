"""Delete files find the data files they are about."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.delete_index import PATH_COLUMN, DeleteIndex
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestContent
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import write_manifest
from tests.iceberg.manifests.samples import make_kind

PATHS = ["a", "b", "c"]
PARTITIONS: list[tuple[float | None]] = [(0.0,), (-0.0,), (math.nan,), (None,)]
EQUALITY, POSITION = Content.EQUALITY_DELETES, Content.POSITION_DELETES


def make_manifest(files: list[tuple[int, ContentFile]], *, spec_id: int = 3) -> Manifest:
    """Of files with their sequence numbers."""
    is_deletes = any(file.content is not Content.DATA for _, file in files)
    kind = make_kind(["double"] if spec_id == 3 else [], version=3, content=ManifestContent(is_deletes))
    kind = replace(kind, spec=replace(kind.spec, spec_id=spec_id))
    entries = [Entry(Status.EXISTING, 1, number, number, file) for number, file in files]
    data, listed = write_manifest(kind, entries, path="m", snapshot_id=1)
    return read_manifest(data, listed)


def file(
    content: Content = Content.DATA, *, spec_id: int = 3, partition: Any = (0.0,), **more: Any
) -> ContentFile:
    return ContentFile(
        **{"path": "a", "format": "parquet", "record_count": 1, "file_size_bytes": 1, **more},
        spec_id=spec_id,
        partition=partition if spec_id == 3 else (),
        content=content,
    )


def find(deletes: list[Manifest], number: int, data: ContentFile) -> tuple[int, ...]:
    index = DeleteIndex(deletes, unpartitioned_specs={0})
    by_row = index.for_manifest(make_manifest([(number, data)], spec_id=data.spec_id)).find(0)
    assert by_row == index.find(data.path, number, data.spec_id, data.partition)
    return by_row


@pytest.mark.parametrize(("number", "expected"), [(4, (0,)), (5, (0,)), (6, ())])
def test_position_deletes_apply_to_data_that_is_not_newer(number: int, expected: tuple[int, ...]) -> None:
    assert find([make_manifest([(5, file(POSITION))])], number, file()) == expected


@pytest.mark.parametrize(("number", "expected"), [(4, (0,)), (5, ()), (6, ())])
def test_equality_deletes_apply_to_older_data(number: int, expected: tuple[int, ...]) -> None:
    assert find([make_manifest([(5, file(EQUALITY, equality_ids=(1,)))])], number, file()) == expected


def test_equality_deletes_without_a_partition_apply_everywhere() -> None:
    deletes = make_manifest([(5, file(EQUALITY, spec_id=0, equality_ids=(1,)))], spec_id=0)

    assert find([deletes], 4, file()) == (0,)


def test_position_deletes_without_a_partition_apply_to_such_data_only() -> None:
    deletes = make_manifest([(5, file(POSITION, spec_id=0))], spec_id=0)

    assert find([deletes], 4, file()) == ()
    assert find([deletes], 4, file(spec_id=0)) == (0,)


def test_a_partition_is_the_same_only_bit_for_bit_except_nan() -> None:
    deletes = [make_manifest([(5, file(POSITION, partition=one)) for one in PARTITIONS])]

    for at, partition in enumerate(PARTITIONS):
        assert find(deletes, 1, file(partition=partition)) == (at,)


def test_bounds_of_one_path_name_the_data_file() -> None:
    bounds = {PATH_COLUMN: b"b"}
    deletes = make_manifest([(5, file(POSITION, lower_bounds=bounds, upper_bounds=bounds))])

    assert find([deletes], 1, file(path="a")) == ()
    assert find([deletes], 1, file(path="b")) == (0,)


def vector(path: str) -> ContentFile:
    return file(POSITION, format="puffin", referenced_data_file=path, content_offset=4, content_size_bytes=9)


def test_a_deletion_vector_replaces_position_deletes_but_not_equality_deletes() -> None:
    deletes = make_manifest([(6, file(POSITION)), (5, vector("a")), (7, file(EQUALITY, equality_ids=(1,)))])

    assert find([deletes], 5, file(path="a")) == (1, 2)
    assert find([deletes], 5, file(path="b")) == (0, 2)


def test_two_deletion_vectors_for_one_file_are_refused() -> None:
    with pytest.raises(InvalidManifest, match="Two deletion vectors"):
        find([make_manifest([(5, vector("a")), (6, vector("a"))])], 1, file())


def test_deleted_delete_files_do_not_apply() -> None:
    kind = make_kind(["double"], content=ManifestContent.DELETES)
    data, listed = write_manifest(
        kind, [Entry(Status.DELETED, 1, 5, 5, file(POSITION))], path="m", snapshot_id=1
    )

    assert find([read_manifest(data, listed)], 1, file()) == ()


@st.composite
def deletes(draw: Any) -> tuple[int, ContentFile]:
    content = draw(st.sampled_from([POSITION, EQUALITY]))
    more: dict[str, Any] = {"equality_ids": (1,)}
    if content is POSITION:
        more = {"referenced_data_file": draw(st.none() | st.sampled_from(PATHS))}
    return draw(st.integers(1, 5)), file(content, partition=draw(st.sampled_from(PARTITIONS)), **more)


@settings(max_examples=100, deadline=None)
@given(
    given_deletes=st.lists(deletes(), max_size=12),
    number=st.integers(1, 5),
    path=st.sampled_from(PATHS),
    partition=st.sampled_from(PARTITIONS),
)
def test_the_index_finds_what_the_rules_say(
    given_deletes: list[tuple[int, ContentFile]], number: int, path: str, partition: Any
) -> None:
    def applies(sequence: int, one: ContentFile) -> bool:
        in_partition = repr(one.partition) == repr(partition)
        if one.content is EQUALITY:
            return in_partition and number < sequence
        if one.referenced_data_file is not None:
            return one.referenced_data_file == path and number <= sequence
        return in_partition and number <= sequence

    expected = tuple(at for at, (sequence, one) in enumerate(given_deletes) if applies(sequence, one))
    manifests = [make_manifest(given_deletes)] if given_deletes else []

    assert find(manifests, number, file(path=path, partition=partition)) == expected
