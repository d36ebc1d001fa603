"""Files of older schemas, read as the table is now: by field id, with promotion, defaults, partitions."""

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from cynosure.query.errors import NotReadable
from cynosure.testing.scan_kit import read_rows, read_table, reference
from tests.query.scan.written import column, make_task, numbered, write


@pytest.fixture(params=["fast", "complete"])
def path_taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "complete":
        monkeypatch.setattr("cynosure.query.scan.governed.read_fast", lambda *_: None)


def test_renamed_swapped_dropped_and_added_columns(tmp_path: Path, path_taken: None) -> None:
    schema = pa.schema(
        [numbered("a", pa.int32(), 1), numbered("b", pa.string(), 2), numbered("c", pa.int32(), 3)]
    )
    file = write(tmp_path / "f", pa.table([[1, 2], ["x", "y"], [7, 8]], schema=schema))
    # 1 and 3 have changed names with each other, 2 is gone and its name given to a new column.
    task = make_task(
        tmp_path,
        [file],
        [column(3, "a", "int"), column(4, "b", "string"), column(1, "c", "int"), column(5, "d", "long")],
    )
    assert read_rows(task) == [
        {"a": 7, "b": None, "c": 1, "d": None},
        {"a": 8, "b": None, "c": 2, "d": None},
    ]
    filtered = replace(task, row_filter=msgspec.json.encode(reference("eq", 3, 8)))
    assert [row["c"] for row in read_rows(filtered)] == [2]
    absent = replace(task, row_filter=msgspec.json.encode(reference("is-null", 4)))
    assert len(read_rows(absent)) == 2


ZONED = datetime(2020, 5, 6, tzinfo=UTC)
PROMOTIONS: list[tuple[pa.DataType, Any, str, Any]] = [
    (pa.int32(), -5, "long", -5),
    (pa.int8(), -5, "int", -5),
    (pa.float32(), 0.5, "double", 0.5),
    (pa.decimal128(5, 2), Decimal("1.25"), "decimal(20, 2)", Decimal("1.25")),
    (pa.decimal128(20, 2), Decimal("1.25"), "decimal(38, 2)", Decimal("1.25")),
    (pa.date32(), date(1969, 5, 6), "timestamp", datetime(1969, 5, 6)),  # noqa: DTZ001
    (pa.timestamp("ms"), datetime(2020, 5, 6, 7), "timestamp", datetime(2020, 5, 6, 7)),  # noqa: DTZ001
    (pa.timestamp("us", tz="UTC"), ZONED, "timestamptz", ZONED),
    (pa.large_string(), "x", "string", "x"),
    (pa.binary(16), uuid.UUID(int=2**100 + 5).bytes, "uuid", str(uuid.UUID(int=2**100 + 5))),
    (pa.binary(3), b"abc", "fixed[3]", b"abc"),
]


@pytest.mark.parametrize(("type_", "value", "wanted", "shown"), PROMOTIONS, ids=lambda each: str(each)[:30])
def test_promotions(
    type_: pa.DataType, value: Any, wanted: str, shown: Any, tmp_path: Path, path_taken: None
) -> None:
    schema = pa.schema([numbered("it", type_, 1)])
    file = write(tmp_path / "f", pa.table([pa.array([value, None, value], type_)], schema=schema))
    task = make_task(tmp_path, [file], [column(1, "it", wanted)])
    assert [row["it"] for row in read_rows(task)] == [shown, None, shown]


def test_filters_on_days_that_became_timestamps(tmp_path: Path, path_taken: None) -> None:
    days = [date(2024, 1, day) for day in (1, 2, 3)]
    schema = pa.schema([numbered("it", pa.date32(), 1)])
    file = write(tmp_path / "f", pa.table([pa.array(days)], schema=schema))
    task = make_task(tmp_path, [file], [column(1, "it", "timestamp")])
    for limit, shown in (
        ("2024-01-02T00:00:00", [3]),
        ("2024-01-03T00:00:00", []),
        ("2023-12-31T23:00:00", [1, 2, 3]),
    ):
        wanted = msgspec.json.encode(reference("gt", 1, limit))
        for narrowed in (replace(task, row_filter=wanted), replace(task, predicates=wanted)):
            assert [row["it"].day for row in read_rows(narrowed)] == shown


NOT_PROMOTIONS = [
    (pa.int64(), "int"),
    (pa.float64(), "float"),
    (pa.int32(), "double"),
    (pa.int32(), "string"),
    (pa.string(), "binary"),
    (pa.binary(), "string"),
    (pa.decimal128(9, 2), "decimal(9, 3)"),
    (pa.decimal128(9, 2), "decimal(8, 2)"),
    (pa.timestamp("us"), "timestamptz"),
    (pa.timestamp("us", tz="UTC"), "timestamp"),
    (pa.timestamp("ns"), "timestamp"),
    (pa.date32(), "timestamptz"),
    (pa.binary(15), "uuid"),
    (pa.binary(2), "fixed[3]"),
    (pa.list_(pa.int32()), "int"),
    (pa.uint64(), "long"),
]


@pytest.mark.parametrize(("type_", "wanted"), NOT_PROMOTIONS, ids=str)
def test_other_types_are_refused_even_if_empty(type_: pa.DataType, wanted: str, tmp_path: Path) -> None:
    schema = pa.schema([numbered("it", type_, 1)])
    file = write(tmp_path / "f", pa.table([pa.array([None], type_)], schema=schema))
    with pytest.raises(NotReadable, match="another type"):
        read_rows(make_task(tmp_path, [file], [column(1, "it", wanted)]))


def test_timestamps_of_96_bits_are_in_utc(tmp_path: Path) -> None:
    schema = pa.schema([numbered("it", pa.timestamp("ns"), 1)])
    when = datetime(1960, 5, 6, 7, 8, 9, 123456)  # noqa: DTZ001
    table = pa.table([pa.array([when, None], pa.timestamp("ns"))], schema=schema)
    file = write(tmp_path / "f", table, use_deprecated_int96_timestamps=True)
    for wanted, shown in (("timestamp", when), ("timestamptz", when.replace(tzinfo=UTC))):
        task = make_task(tmp_path, [file], [column(1, "it", wanted)])
        assert [row["it"] for row in read_rows(task)] == [shown, None]


def test_defaults_and_partition_values_where_files_have_none(tmp_path: Path, path_taken: None) -> None:
    file = write(tmp_path / "f", pa.table([[1, 2]], schema=pa.schema([numbered("id", pa.int64(), 1)])))
    fields = [
        column(1, "id", "long"),
        column(2, "by_default", "string", **{"initial-default": "new"}),
        column(3, "part", "date", **{"initial-default": "2000-01-01"}),
        column(4, "none", "int"),
        column(5, "price", "decimal(9, 2)", **{"initial-default": "1.50"}),
        column(6, "key", "uuid", **{"initial-default": "00000000-0000-0000-0000-00000000000a"}),
        column(7, "must", "timestamptz", required=True, **{"initial-default": "2020-01-01T00:00:00+00:00"}),
        column(8, "nothing", "string", **{"initial-default": "never"}),
    ]
    task = make_task(tmp_path, [replace(file, constants={3: "2024-05-06", 8: None, 1: 99})], fields)
    row = {
        "by_default": "new",
        "part": date(2024, 5, 6),
        "none": None,
        "price": Decimal("1.50"),
        "key": "00000000-0000-0000-0000-00000000000a",
        "must": datetime(2020, 1, 1, tzinfo=UTC),
        "nothing": None,
    }
    # The file has the first column, so what the partition says of it does not count.
    assert read_rows(task) == [{"id": 1, **row}, {"id": 2, **row}]
    by_part = replace(task, row_filter=msgspec.json.encode(reference("eq", 3, "2024-05-06")), columns=(1,))
    assert len(read_rows(by_part)) == 2
    other = replace(task, row_filter=msgspec.json.encode(reference("eq", 3, "2000-01-01")), columns=(1,))
    assert read_rows(other) == []


def test_a_required_column_that_a_file_does_not_have(tmp_path: Path, path_taken: None) -> None:
    file = write(tmp_path / "f", pa.table([[1]], schema=pa.schema([numbered("id", pa.int64(), 1)])))
    fields = [column(1, "id", "long"), column(2, "must", "long", required=True)]
    with pytest.raises(NotReadable, match="required column"):
        read_rows(make_task(tmp_path, [file], fields))
    assert len(read_rows(make_task(tmp_path, [file], fields, columns=(1,)))) == 1


def nested_file(directory: Path) -> Any:
    point = pa.struct(
        [numbered("x", pa.int32(), 4), numbered("y", pa.int32(), 5), numbered("gone", pa.string(), 6)]
    )
    schema = pa.schema(
        [
            numbered("id", pa.int64(), 1),
            numbered("point", point, 2),
            numbered("many", pa.list_(numbered("element", point_of(10), 9)), 3),
            numbered(
                "named",
                pa.map_(
                    numbered("key", pa.string(), 21).with_nullable(False), numbered("value", point_of(23), 22)
                ),
                20,
            ),
        ]
    )
    rows = [
        {
            "id": 1,
            "point": {"x": 1, "y": 2, "gone": "a"},
            "many": [{"x": 1}, None],
            "named": [("k", {"x": 5})],
        },
        {"id": 2, "point": None, "many": None, "named": None},
        {"id": 3, "point": {"x": None, "y": 4, "gone": None}, "many": [], "named": [("z", None)]},
    ]
    return write(directory / "f", pa.Table.from_pylist(rows, schema=schema), row_group_size=2)


def point_of(first_id: int) -> pa.DataType:
    return pa.struct([numbered("x", pa.int32(), first_id)])


def test_nested_fields_change_like_others(tmp_path: Path) -> None:
    file = nested_file(tmp_path)
    point = {
        "type": "struct",
        "fields": [
            column(5, "up", "long"),
            column(7, "new", "int", **{"initial-default": 9}),
            column(4, "x", "int"),
        ],
    }
    inner = {"type": "struct", "fields": [column(11, "added", "string"), column(10, "x", "long")]}
    listed = {"type": "list", "element-id": 9, "element": inner, "element-required": False}
    value = {"type": "struct", "fields": [column(23, "renamed", "int")]}
    mapped = {
        "type": "map",
        "key-id": 21,
        "key": "string",
        "value-id": 22,
        "value": value,
        "value-required": False,
    }
    fields = [
        column(2, "point", point),
        column(3, "many", listed),
        column(20, "named", mapped),
        column(1, "id", "long"),
    ]
    task = make_task(tmp_path, [file], fields)
    assert read_rows(task) == [
        {
            "point": {"up": 2, "new": 9, "x": 1},
            "many": [{"added": None, "x": 1}, None],
            "named": [("k", {"renamed": 5})],
            "id": 1,
        },
        {"point": None, "many": None, "named": None, "id": 2},
        {"point": {"up": 4, "new": 9, "x": None}, "many": [], "named": [("z", None)], "id": 3},
    ]
    inside = replace(task, row_filter=msgspec.json.encode(reference("eq", 5, 4)), columns=(1,))
    assert read_rows(inside) == [{"id": 3}]
    nowhere = replace(task, row_filter=msgspec.json.encode(reference("is-null", 5)), columns=(1,))
    assert read_rows(nowhere) == [{"id": 2}]


def test_a_list_of_other_elements_is_refused(tmp_path: Path) -> None:
    file = nested_file(tmp_path)
    inner = {"type": "struct", "fields": [column(10, "x", "int")]}
    listed = {"type": "list", "element-id": 99, "element": inner, "element-required": False}
    with pytest.raises(NotReadable, match="inside a list or map"):
        read_rows(make_task(tmp_path, [file], [column(3, "many", listed)]))


def test_a_whole_struct_that_is_new_with_defaults_inside(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table([[1]], schema=pa.schema([numbered("id", pa.int64(), 1)])))
    inner = {
        "type": "struct",
        "fields": [column(3, "n", "int", **{"initial-default": 7}), column(4, "m", "int")],
    }
    fields = [
        column(1, "id", "long"),
        column(2, "s", inner, **{"initial-default": {}}),
        column(5, "t", inner),
    ]
    assert read_rows(make_task(tmp_path, [file], fields[:2])) == [{"id": 1, "s": {"n": 7, "m": None}}]
    assert read_rows(
        make_task(tmp_path, [file], [fields[0], column(5, "t", {**inner, "fields": [column(6, "n", "int")]})])
    ) == [{"id": 1, "t": None}]


def test_files_without_ids_need_a_name_mapping(tmp_path: Path, path_taken: None) -> None:
    rows = [{"ID": 1, "p": {"x": 5}, "l": [1, 2], "other": 0}]
    path = tmp_path / "f"
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, path, store_schema=False)
    file = write(path, table)
    inner = {"type": "struct", "fields": [column(3, "renamed", "long")]}
    listed = {"type": "list", "element-id": 5, "element": "long", "element-required": False}
    fields = [column(1, "id", "long"), column(2, "p", inner), column(4, "l", listed), column(6, "new", "int")]
    task = make_task(tmp_path, [file], fields)
    with pytest.raises(NotReadable, match="no field ids"):
        read_rows(task)
    mapping = [
        {"field-id": 1, "names": ["id", "ID"]},
        {"field-id": 2, "names": ["p"], "fields": [{"field-id": 3, "names": ["x"]}]},
        {"field-id": 4, "names": ["l"], "fields": [{"field-id": 5, "names": ["element"]}]},
    ]
    named = replace(task, name_mapping=msgspec.json.encode(mapping))
    assert read_rows(named) == [{"id": 1, "p": {"renamed": 5}, "l": [1, 2], "new": None}]
    with pytest.raises(NotReadable, match="mapping of names"):
        read_rows(replace(task, name_mapping=b"{"))


def test_two_columns_with_one_id_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([numbered("a", pa.int64(), 1), numbered("b", pa.int64(), 1)])
    file = write(tmp_path / "f", pa.table([[1], [2]], schema=schema))
    with pytest.raises(NotReadable, match="same field"):
        read_rows(make_task(tmp_path, [file], [column(1, "a", "long")]))


def test_odd_names_in_files(tmp_path: Path, path_taken: None) -> None:
    names = ['q"uote', "a.b", "CaSe", "case", "ü ", ""]
    schema = pa.schema([numbered(name, pa.int64(), at) for at, name in enumerate(names, 1)])
    file = write(tmp_path / "f", pa.table([[at] for at in range(1, 7)], schema=schema))
    fields = [column(at, f"c{at}", "long") for at in range(1, 7)]
    task = make_task(tmp_path, [file], fields)
    assert read_rows(task) == [{f"c{at}": at for at in range(1, 7)}]
    assert read_rows(replace(task, row_filter=msgspec.json.encode(reference("eq", 3, 4)))) == []


@pytest.mark.parametrize("type_", ["time", "timestamp_ns", "variant", "unknown"])
def test_unsupported_types_only_where_they_are_wanted(type_: str, tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table([[1]], schema=pa.schema([numbered("id", pa.int64(), 1)])))
    fields = [column(1, "id", "long"), column(2, "odd", type_)]
    assert read_rows(make_task(tmp_path, [file], fields, columns=(1,))) == [{"id": 1}]
    with pytest.raises(NotReadable, match="not read by governed SQL"):
        read_rows(make_task(tmp_path, [file], fields))
    if type_ != "variant":
        hidden = msgspec.json.encode(reference("is-null", 2))
        with pytest.raises(NotReadable):
            read_rows(make_task(tmp_path, [file], fields, columns=(1,), row_filter=hidden))


def test_values_are_the_same_through_dictionaries(tmp_path: Path, path_taken: None) -> None:
    schema = pa.schema([numbered("it", pa.dictionary(pa.int32(), pa.string()), 1)])
    values = pa.array(["a", "b", None, "a"]).dictionary_encode()
    file = write(tmp_path / "f", pa.table([values], schema=schema), store_schema=True)
    assert read_table(make_task(tmp_path, [file], [column(1, "it", "string")])).column("it").to_pylist() == [
        "a",
        "b",
        None,
        "a",
    ]
