"""Files that cannot belong to a table are refused, each by its name; all others are taken (I84)."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.appending.check_files import check_files, find_present
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Status
from cynosure.iceberg.metadata import TableMetadata
from tests.iceberg.appending.samples import LOCATION, data_file, entry, read, table, write
from tests.iceberg.manifests.samples import long_bound
from tests.iceberg.samples import new_table, update


def check(*files: ContentFile, metadata: TableMetadata | None = None) -> None:
    check_files(files, metadata or table(), is_allowed=lambda path: path.startswith(f"{LOCATION}/"))


def refused(*files: ContentFile, metadata: TableMetadata | None = None) -> BadInput:
    with pytest.raises(BadInput) as caught:
        check(*files, metadata=metadata)
    assert caught.value.fix
    return caught.value


def test_usual_files_are_taken() -> None:
    metrics = {
        "column_sizes": {1: 50, 3: 20},
        "value_counts": {1: 10, 2: 10, 3: 10},
        "null_value_counts": {1: 0, 2: 10, 3: 0},
        "lower_bounds": {1: long_bound(1), 3: b"a"},
        "upper_bounds": {1: long_bound(1), 3: b"z"},
    }
    full = data_file("f", split_offsets=(4, 50), sort_order_id=0, key_metadata=b"k", **metrics)
    check(full, data_file("g"), data_file("h", partition=(None,), format="orc", record_count=0))
    check()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": Content.POSITION_DELETES}, "content"),
        ({"content": Content.EQUALITY_DELETES, "equality_ids": (1,)}, "content"),
        ({"format": "puffin"}, "file-format"),
        ({"format": "csv"}, "file-format"),
        ({"path": "s3://bucket/other/data/f.parquet"}, "file-path"),
        ({"path": "s3://bucket/table-2/f.parquet"}, "file-path"),
        ({"file_size_bytes": 0}, "file-size-in-bytes"),
        ({"file_size_bytes": -4}, "file-size-in-bytes"),
        ({"record_count": -1}, "record-count"),
        ({"first_row_id": 0}, "first-row-id"),
        ({"sort_order_id": 4}, "sort-order-id"),
        ({"split_offsets": (50, 4)}, "split-offsets"),
        ({"split_offsets": (4, 4)}, "split-offsets"),
        ({"split_offsets": (4, 100)}, "split-offsets"),
        ({"split_offsets": (-4, 10)}, "split-offsets"),
        ({"spec_id": 3}, "spec-id"),
        ({"partition": ()}, "partition"),
        ({"partition": (1, 2)}, "partition"),
        ({"partition": ("1",)}, "partition[0]"),
        ({"partition": (1.5,)}, "partition[0]"),
        ({"partition": (True,)}, "partition[0]"),
        ({"partition": (2**63,)}, "partition[0]"),
        ({"lower_bounds": {1: long_bound(5)}, "partition": (1,)}, "partition[0]"),
        ({"upper_bounds": {1: long_bound(0)}, "partition": (1,)}, "partition[0]"),
        ({"null_value_counts": {1: 2}, "partition": (1,)}, "partition[0]"),
        ({"column_sizes": {77: 1}}, "column-sizes"),
        ({"value_counts": {77: 1}}, "value-counts"),
        ({"upper_bounds": {77: b"x"}}, "upper-bounds"),
        ({"value_counts": {3: -1}}, "value-counts"),
        ({"value_counts": {3: 5}, "null_value_counts": {3: 6}}, "null-value-counts"),
        ({"value_counts": {3: 5}, "nan_value_counts": {3: 6}}, "nan-value-counts"),
        ({"lower_bounds": {3: b"b"}, "upper_bounds": {3: b"a"}}, "lower-bounds"),
    ],
)
def test_file_that_cannot_be_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    error = refused(data_file("a"), data_file("b", **changes))
    assert error.field == f"data-files[1].{field}"


def test_same_file_twice_names_both() -> None:
    error = refused(data_file("a"), data_file("b"), data_file("a"))
    assert error.field == "data-files[2].file-path"
    assert "data-files[0]" in error.fix


def test_items_are_named_as_the_caller_says() -> None:
    with pytest.raises(BadInput) as caught:
        check_files([data_file("a")], table(), is_allowed=lambda _: False, field="manifests[2].entries")
    assert caught.value.field == "manifests[2].entries[0].file-path"


def test_columns_of_older_schemas_and_of_iceberg_itself_may_have_metrics() -> None:
    metadata = table()
    fields = [{"id": 1, "name": "id", "required": True, "type": "long"}]
    metadata = update(
        metadata,
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": fields}},
        {"action": "set-current-schema", "schema-id": -1},
    )
    check(data_file("a", value_counts={3: 10, 2147483540: 10}), metadata=metadata)


def test_every_known_spec_is_taken() -> None:
    spec = {"spec-id": 1, "fields": [{"name": "b", "transform": "bucket[4]", "source-id": 3}]}
    metadata = update(table(), {"action": "add-spec", "spec": spec})
    check(data_file("a", spec_id=1, partition=(3,)), data_file("b"), metadata=metadata)
    assert refused(data_file("a", spec_id=1, partition=("x",)), metadata=metadata).field.endswith("[0]")


def test_void_field_is_null() -> None:
    spec = {"fields": [{"name": "v", "transform": "void", "source-id": 1}]}
    metadata = new_table(partition_spec=spec)
    check(data_file("a", partition=(None,)), metadata=metadata)
    assert refused(data_file("a", partition=(1,)), metadata=metadata).field == "data-files[0].partition[0]"


GOOD = {
    "boolean": False,
    "int": -(2**31),
    "long": 2**63 - 1,
    "float": 1.5,
    "double": float("-inf"),
    "date": 0,
    "time": 1,
    "timestamptz": -1,
    "string": "ä",
    "uuid": UUID(int=3),
    "fixed[3]": b"abc",
    "binary": b"",
    "decimal(5,2)": Decimal("-999.99"),
}
BAD: dict[str, list[Any]] = {
    "boolean": [1, "true"],
    "int": [2**31, "1", None.__class__, True],
    "float": [1e300, "1"],
    "date": ["2020-01-01"],
    "string": [b"x", 5],
    "uuid": ["x", 5],
    "decimal(5,2)": [Decimal("1000.00"), Decimal("0.001"), 5.5, "1.00"],
}


@pytest.mark.parametrize("type_", [*GOOD])
def test_partition_values_are_of_their_type(type_: str) -> None:
    column = {"id": 1, "name": "c", "required": False, "type": type_}
    metadata = new_table(
        schema={"type": "struct", "fields": [column]},
        partition_spec={"fields": [{"name": "c", "transform": "identity", "source-id": 1}]},
    )
    check(data_file("a", partition=(GOOD[type_],)), metadata=metadata)
    for bad in BAD.get(type_, []):
        error = refused(data_file("a", partition=(bad,)), metadata=metadata)
        assert error.field == "data-files[0].partition[0]", bad


@pytest.mark.parametrize("others", [0, 40])
def test_file_that_is_present_is_found(others: int) -> None:
    metadata = table()
    entries = [entry(f"f{at}" + "x" * (at % 3), 1) for at in range(50)]
    entries.append(entry("gone", 1, Status.DELETED, 1))
    data, listed = write(metadata, "m", entries, 1)
    manifest = read(metadata, data, listed)
    more = [data_file(f"new{at}").path for at in range(others)]
    assert find_present(manifest, [*more, entries[17].file.path]) == entries[17].file.path
    assert find_present(manifest, [*more, data_file("gone").path]) is None
    # Parts of what is there are not there, nor are several in one.
    for path in ("f1", "f", "f1.parquetf2x", ""):
        assert find_present(manifest, [*more, data_file(path).path]) is None, path
    assert find_present(manifest, [*more, "s3://elsewhere/f1.parquet", LOCATION]) is None
    assert find_present(manifest, []) is None


def test_nothing_is_present_in_nothing() -> None:
    metadata = table()
    data, listed = write(metadata, "m", [], 1)
    assert find_present(read(metadata, data, listed), [data_file("a").path]) is None


def test_only_file_of_a_manifest_is_found() -> None:
    metadata = table()
    data, listed = write(metadata, "m", [entry("only", 1)], 1)
    manifest = read(metadata, data, listed)
    assert find_present(manifest, [data_file("only").path]) == data_file("only").path
    assert find_present(manifest, [data_file("other").path]) is None
