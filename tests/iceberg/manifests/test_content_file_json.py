"""Content files in JSON: exact in both directions, and refused with the item's name."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.rest.scan_planning import RESTDataFile

from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.bounds import read_bound, write_bound
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.content_file_json import (
    BoundForm,
    JsonTypes,
    file_from_json,
    file_to_json,
)
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.row_encoder import RowEncoder
from cynosure.iceberg.manifests.write_manifest import write_manifest
from cynosure.iceberg.types import parse_type
from tests.iceberg.manifests.samples import PHASES, VALUES, files, make_kind, make_schema, plain

NAMES = ["long", "string", "decimal(9, 2)", "timestamptz", "uuid", "binary", "double", "date", "boolean"]
SCHEMA = make_schema(NAMES)
KIND = make_kind(NAMES, version=3)
TYPES = JsonTypes({3: KIND.partition_types}, SCHEMA.find_type)
BINARY_TYPES = msgspec.structs.replace(TYPES, bound_form=BoundForm.BINARY)


@st.composite
def typed_files(draw: Any) -> ContentFile:
    """Files whose bounds are values of their columns."""
    content = draw(st.sampled_from(Content))
    base = draw(files(NAMES, version=3, content=content))
    if content is not Content.DATA:
        counts = dict.fromkeys(
            (
                "column_sizes",
                "value_counts",
                "null_value_counts",
                "nan_value_counts",
                "lower_bounds",
                "upper_bounds",
            )
        )
        base = msgspec.structs.replace(base, **counts)
    else:
        bounds = {at: write_bound(parse_type(name), draw(VALUES[name])) for at, name in enumerate(NAMES, 1)}
        base = msgspec.structs.replace(base, lower_bounds=bounds, upper_bounds=bounds, value_counts=None)
    size = max(base.split_offsets or (0,)) + 1
    offsets = tuple(sorted(set(base.split_offsets))) if base.split_offsets else None
    if base.referenced_data_file is not None:
        base = msgspec.structs.replace(base, referenced_data_file="s3://b/g h")
    return msgspec.structs.replace(base, path="s3://b/f", split_offsets=offsets, file_size_bytes=size)


def is_finite(file: ContentFile) -> bool:
    values = [*file.partition, *(read_bound(parse_type("double"), one) for one in _doubles(file))]
    return not any(isinstance(value, float) and value - value != 0 for value in values)


def _doubles(file: ContentFile) -> list[bytes]:
    at = NAMES.index("double") + 1
    return [bounds[at] for bounds in (file.lower_bounds, file.upper_bounds) if bounds and at in bounds]


@settings(max_examples=80, phases=PHASES, deadline=None)
@given(file=typed_files(), kinds=st.sampled_from([TYPES, BINARY_TYPES]))
def test_a_file_comes_back_as_it_was(file: ContentFile, kinds: JsonTypes) -> None:
    assume(is_finite(file))
    document = json.loads(msgspec.json.encode(file_to_json(file, kinds)))

    found = file_from_json(document, kinds, field="files[0]")

    assert plain(msgspec.structs.asdict(found)) == plain(msgspec.structs.asdict(file))


@settings(max_examples=40, phases=PHASES, deadline=None)
@given(file=typed_files(), number=st.integers(0, 9), first_row_id=st.none() | st.integers(0, 9))
def test_the_encoder_of_rows_says_the_same(file: ContentFile, number: int, first_row_id: int | None) -> None:
    assume(file.content is Content.DATA)
    file = msgspec.structs.replace(file, first_row_id=first_row_id)
    data, listed = write_manifest(
        KIND, [Entry(Status.EXISTING, 1, number, number, file)], path="m", snapshot_id=1
    )
    manifest = read_manifest(data, msgspec.structs.replace(listed, first_row_id=first_row_id))
    stats = frozenset(range(1, 20)) | {2_000_000_000}

    found = json.loads(RowEncoder(manifest, TYPES, stats_ids=stats).encode(0))

    expected = file_to_json(manifest.file(0), TYPES, sequence_number=number)
    assert found == json.loads(msgspec.json.encode(expected))


def test_without_stats_fields_there_are_no_metrics() -> None:
    file = file_from_json(make_json(), TYPES, field="f")
    data, listed = write_manifest(KIND, [Entry(Status.ADDED, 1, 1, 1, file)], path="m", snapshot_id=1)

    found = json.loads(RowEncoder(read_manifest(data, listed), TYPES).encode(0))

    assert not [name for name in found if name.endswith(("counts", "bounds", "sizes"))]


def test_pyiceberg_takes_it() -> None:
    found = RESTDataFile.model_validate_json(msgspec.json.encode(make_json()))

    assert found.lower_bounds is not None
    assert found.lower_bounds.to_dict()[1] == -5


def make_json(**changes: Any) -> dict[str, Any]:
    """A file as a client sends it."""
    partition: list[Any] = [1, "x", "1.50", "2026-11-15T10:00:00.000000+00:00"]
    partition += ["eb26bdb1-a1d8-4aa6-990e-da940875492c", "0AFF", 0.5, "2026-11-15", True]
    document = {
        "content": "data",
        "file-path": "s3://b/f.parquet",
        "file-format": "parquet",
        "spec-id": 3,
        "partition": partition,
        "file-size-in-bytes": 1000,
        "record-count": 10,
        "value-counts": {"keys": [1, 2], "values": [10, 10]},
        "null-value-counts": {"keys": [1], "values": [0]},
        "lower-bounds": {"keys": [1, 3], "values": [-5, "1.25"]},
        "split-offsets": [4, 500],
    }
    return {name: value for name, value in (document | changes).items() if value is not None}


def at(place: int, value: Any) -> list[Any]:
    values = list(make_json()["partition"])
    values[place] = value
    return values


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("content", "rows", "content"),
        ("content", None, "content"),
        ("file-path", "", "file-path"),
        ("file-path", "s3://b/\x00", "file-path"),
        ("file-path", 5, "file-path"),
        ("file-format", "csv", "file-format"),
        ("file-format", "puffin", "file-format"),
        ("spec-id", 4, "spec-id"),
        ("spec-id", True, "spec-id"),
        ("partition", None, "partition"),
        ("partition", [1], "partition"),
        ("partition", at(0, "1"), "partition[0]"),
        ("partition", at(2, "1.505"), "partition[2]"),
        ("partition", at(3, "2026-11-15T10:00:00.000000"), "partition[3]"),
        ("record-count", -1, "record-count"),
        ("record-count", 1.5, "record-count"),
        ("file-size-in-bytes", 2**63, "file-size-in-bytes"),
        ("split-offsets", [4, 4], "split-offsets"),
        ("split-offsets", [4, 1000], "split-offsets"),
        ("split-offsets", [4, -1], "split-offsets[1]"),
        ("value-counts", {"keys": [1], "values": []}, "value-counts"),
        ("value-counts", {"keys": [1, 1], "values": [1, 1]}, "value-counts.keys"),
        ("value-counts", {"keys": ["1"], "values": [1]}, "value-counts.keys[0]"),
        ("value-counts", {"keys": [1], "values": [-1]}, "value-counts.values[0]"),
        ("null-value-counts", {"keys": [1], "values": [11]}, "null-value-counts"),
        ("lower-bounds", {"keys": [1], "values": ["x"]}, "lower-bounds.values[0]"),
        ("lower-bounds", {"keys": [99], "values": [1]}, "lower-bounds.keys[0]"),
        ("equality-ids", [1], "equality-ids"),
        ("content-offset", 5, "content-size-in-bytes"),
        ("referenced-data-file", "s3://b/g", "referenced-data-file"),
        ("key-metadata", "xyz", "key-metadata"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: Any, field: str) -> None:
    file_from_json(make_json(), TYPES, field="data-files[3]")

    with pytest.raises(BadInput) as caught:
        file_from_json(make_json(**{name: value}), TYPES, field="data-files[3]")

    assert caught.value.field == f"data-files[3].{field}"


@pytest.mark.parametrize("json_", [None, [], "x", 5])
def test_what_is_no_object_is_no_file(json_: Any) -> None:
    with pytest.raises(BadInput) as caught:
        file_from_json(json_, TYPES, field="data-files[3]")
    assert caught.value.field == "data-files[3]"


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(sorted(make_json())),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["keys", "values"]), inner)
        ),
        max_leaves=6,
    ),
)
def test_anything_else_is_refused_or_read(name: str, value: Any) -> None:
    document = make_json() | {name: value}
    try:
        file_from_json(document, TYPES, field="f")
    except BadInput as error:
        field = error.field
    else:
        field = "f"
    assert field.startswith("f")


@pytest.mark.parametrize("name", sorted(VALUES))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_bound_comes_back_as_it_was(name: str, data: Any) -> None:
    value = data.draw(VALUES[name])
    type_ = parse_type(name)

    assert plain(read_bound(type_, write_bound(type_, value))) == plain(value)


@pytest.mark.parametrize(
    ("type_", "data", "value"),
    [
        ("long", b"\x05\x00\x00\x00", 5),
        ("double", b"\x00\x00\x00\x3f", 0.5),
        ("timestamp", b"\x01\x00\x00\x00", 86_400_000_000),
        ("timestamp_ns", b"\x01\x00\x00\x00", 86_400_000_000_000),
        ("long", b"\x05", None),
        ("uuid", b"\x05", None),
        ("string", b"\xff", None),
        ("variant", b"\x05", None),
    ],
)
def test_bounds_of_older_and_wrong_types(type_: str, data: bytes, value: Any) -> None:
    assert read_bound(parse_type(type_), data) == value
