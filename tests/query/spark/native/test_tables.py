"""Tables as they come: deletes of all kinds, columns that changed, nesting, old schemas, partitions."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.iceberg.partitioning import PartitionField
from cynosure.iceberg.types import LONG
from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Mask, ScanTask
from cynosure.testing.scan_kit import read_rows, reference, task_from_arrow
from tests.query.scan.written import (
    column,
    make_task,
    numbered,
    write,
    write_equality,
    write_positions,
    write_vector,
)
from tests.query.spark.native.comparing import check_same
from tests.query.spark.native.world import to_relation
from tests.query.spark.world import Sparks, relation

ROWS = 300
PREFIXES = ("starts-with", "not-starts-with")


def make_base(directory: Path, **others: Any) -> ScanTask:
    table = pa.table(
        {"id": pa.array(range(ROWS), pa.int64()), "name": [f"n{each % 10}" for each in range(ROWS)]}
    )
    return task_from_arrow(directory, table, files=2, row_group_rows=40, **others)


def deleting(task: ScanTask, *deletes: Any) -> ScanTask:
    """All deletes are about all files, but vectors, which are about one each."""
    files = []
    for at, file in enumerate(task.files):
        places = [place for place, each in enumerate(deletes) if each.kind != "vector" or place == at]
        files.append(replace(file, deletes=tuple(places)))
    return replace(task, files=tuple(files), deletes=deletes)


def test_position_and_equality_deletes(natives: Sparks, tmp_path: Path):
    task = make_base(tmp_path, row_filter=reference("not-eq", 2, "n9"), masks={"name": "mask-alphanum"})
    first, second = (file.path for file in task.files)
    positions = write_positions(
        tmp_path / "p.parquet", [(first, each) for each in range(0, 90, 2)] + [(second, 5), (second, 6)]
    )
    named = pa.table([pa.array(["n3", "n4"])], schema=pa.schema([numbered("name", pa.string(), 2)]))
    equality = write_equality(tmp_path / "e.parquet", named, [2])
    # The columns of an equality delete are not asked for, and nothing of the filter either.
    tasks = {"both": replace(deleting(task, positions, equality), columns=(1,))}
    assert 50 < check_same(natives, tasks, tmp_path) < ROWS


def test_deletion_vectors(natives: Sparks, tmp_path: Path):
    task = make_base(tmp_path)
    vectors = [write_vector(tmp_path / f"{at}.puffin", range(at, 100, 3)) for at in range(2)]
    assert check_same(natives, {"vectors": deleting(task, *vectors)}, tmp_path, version=3) == ROWS - 67


def test_columns_that_changed(natives: Sparks, tmp_path: Path):
    """Renamed, made wider, added with a default, added in a struct; filters and masks are by field id."""
    point = pa.struct([numbered("x", pa.int32(), 11), numbered("y", pa.string(), 12)])
    old = pa.schema(
        [
            numbered("name", pa.string(), 1),
            numbered("n", pa.int32(), 2),
            numbered("d", pa.decimal128(9, 2), 3),
            numbered("f", pa.float32(), 4),
            numbered("point", point, 5),
        ]
    )
    rows = [
        {
            "name": f"n{each}",
            "n": each,
            "d": each,
            "f": each / 4,
            "point": None if each % 5 == 0 else {"x": each, "y": "y1"},
        }
        for each in range(50)
    ]
    file = write(tmp_path / "old.parquet", pa.Table.from_pylist(rows, schema=old))
    nested = {
        "type": "struct",
        "fields": [column(12, "y", "string"), column(11, "x", "long"), column(13, "z", "int")],
    }
    fields = [
        column(6, "added", "string", **{"initial-default": "d-1", "write-default": "d-1"}),
        column(2, "n", "long"),
        column(1, "title", "string"),
        column(3, "d", "decimal(12, 2)"),
        column(4, "f", "double"),
        column(5, "point", nested),
        column(7, "empty", "int"),
    ]
    base = make_task(tmp_path, [file], fields)
    tasks = {
        "plain": base,
        "filter on a promoted column": replace(base, row_filter=_json(reference("gt", 2, 10))),
        "filter on a renamed column": replace(base, row_filter=_json(reference("starts-with", 1, "n1"))),
        "filter on a default": replace(base, row_filter=_json(reference("eq", 6, "d-1"))),
        "filter on another value than the default": replace(base, row_filter=_json(reference("eq", 6, "x"))),
        "filter on a column without values": replace(base, row_filter=_json(reference("is-null", 7))),
        "filter in a struct": replace(base, row_filter=_json(reference("lt", 11, 20))),
        "mask of a default": replace(base, masks=(Mask(6, "mask-alphanum"),)),
        "masks in a struct": replace(
            base,
            masks=(Mask(12, "mask-alphanum"), Mask(11, "mask-to-fixed-value"), Mask(13, "replace-with-null")),
        ),
        "a masked struct": replace(base, masks=(Mask(5, "replace-with-null"),)),
    }
    assert check_same(natives, tasks, tmp_path, version=3) > 300


def test_nesting(natives: Sparks, tmp_path: Path):
    deep = pa.struct([("n", pa.int32()), ("odd `name`.x", pa.string())])
    type_ = pa.struct([("items", pa.list_(deep)), ("named", pa.map_(pa.string(), deep)), ("deep", deep)])
    value = {"n": 1, "odd `name`.x": "a1"}
    rows = [
        {"id": 1, "v": {"items": [value, None], "named": [("k", value)], "deep": value}},
        {"id": 2, "v": {"items": None, "named": None, "deep": None}},
        {"id": 3, "v": None},
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema([("id", pa.int64()), ("v", type_)]))
    base = task_from_arrow(tmp_path, table)
    deep_fields = msgspec.json.decode(base.schema)["fields"][1]["type"]["fields"][2]["type"]["fields"]
    number, text = (each["id"] for each in deep_fields)
    tasks = {
        "plain": base,
        "masked": replace(base, masks=(Mask(text, "mask-alphanum"), Mask(number, "mask-to-fixed-value"))),
        "filtered": replace(base, row_filter=_json(reference("eq", text, "a1"))),
        "absent": replace(base, row_filter=_json(reference("is-null", number))),
    }
    assert check_same(natives, tasks, tmp_path) == 9
    inside = replace(base, masks=(Mask(text - 6, "mask-alphanum"),))
    with pytest.raises(NotReadable, match="inside a list or map"):
        natives.rows("SELECT id FROM cyn_0", to_relation(replace(inside, columns=(1,)), tmp_path))


def test_names_that_differ_by_case_only(natives: Sparks, tmp_path: Path):
    """Spark's own sessions take them for one."""
    schema = pa.schema([numbered("a", pa.int64(), 1), numbered("A", pa.int64(), 2)])
    file = write(tmp_path / "f.parquet", pa.table([[1, 2], [2, 1]], schema=schema))
    task = make_task(tmp_path, [file], [column(1, "a", "long"), column(2, "A", "long")])
    task = replace(task, columns=(1,), row_filter=_json(reference("eq", 2, 1)))
    assert natives.rows("SELECT a FROM cyn_0", to_relation(task, tmp_path)) == [(2,)]


def test_an_old_schema_and_a_partition_that_it_does_not_have(natives: Sparks, tmp_path: Path):
    """Time travel by snapshot id: the snapshot's schema; the table is split by a column of later."""
    task = make_base(tmp_path)
    later = msgspec.json.decode(task.schema)
    later["schema-id"] = 4
    later["fields"] = [
        {"id": 1, "name": "renamed", "type": "long", "required": False},
        {"id": 9, "name": "part", "type": "string", "required": False},
    ]
    specs = [
        {"spec-id": 0, "fields": []},
        {"spec-id": 1, "fields": [{"source-id": 9, "field-id": 1000, "name": "p", "transform": "identity"}]},
    ]
    by_part = {"source-id": 9, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    order = {"order-id": 3, "fields": [by_part]}
    changes = {
        "is_current_schema": False,
        "schemas": (later,),
        "current-schema-id": 4,
        "partition-specs": specs,
        "default-spec-id": 1,
        "sort-orders": [order],
        "default-sort-order-id": 3,
    }
    assert check_same(natives, {"old": task}, tmp_path, **changes) == ROWS


def test_columns_of_types_that_nobody_reads(natives: Sparks, tmp_path: Path):
    schema = pa.schema([numbered("id", pa.int64(), 1), numbered("at", pa.time64("us"), 2)])
    file = write(tmp_path / "f.parquet", pa.table([[1, 2], [5, 6]], schema=schema))
    task = make_task(tmp_path, [file], [column(1, "id", "long"), column(2, "at", "time")], columns=(1,))
    assert check_same(natives, {"time": task}, tmp_path) == 2
    hidden = replace(task, row_filter=_json(reference("not-null", 2)))
    with pytest.raises(NotReadable):
        natives.rows("SELECT id FROM cyn_0", to_relation(hidden, tmp_path))


def test_partitions_do_not_make_a_filter_superfluous(natives: Sparks, tmp_path: Path):
    """Iceberg takes a filter on a partition for done when all values of a file pass by its own rules."""
    values = [None, 0.0, -0.0, 5.0, float("nan")]
    files = []
    for at, value in enumerate(values):
        schema = pa.schema([numbered("id", pa.int64(), 1), numbered("part", pa.float64(), 2)])
        table = pa.table([[at], pa.array([value], pa.float64())], schema=schema)
        files.append(write(tmp_path / f"{at}.parquet", table))
    base = make_task(tmp_path, files, [column(1, "id", "long"), column(2, "part", "double")])
    filters = [
        ("lt", 0.0),
        ("lt-eq", -0.0),
        ("gt", 0.0),
        ("gt-eq", 0.0),
        ("eq", -0.0),
        ("not-eq", 0.0),
        ("not-in", [5.0, 0.0]),
        # So many that Spark makes a set of them.
        ("in", [float(each) for each in range(6, 20)] + [0.0]),
        ("not-in", [float(each) for each in range(6, 20)] + [-0.0]),
    ]
    tasks = {
        f"{op} {value}": replace(base, row_filter=_json(reference(op, 2, value))) for op, value in filters
    }
    spec = (PartitionField("part", "identity", source_id=2, field_id=1000),)
    partitions = tuple((each,) for each in values)
    assert check_same(natives, tasks, tmp_path, spec=spec, partitions=partitions) > 10


def test_empty_prefixes_and_partitions_of_prefixes(natives: Sparks, tmp_path: Path):
    """`LIKE '%'`. Iceberg fails on it where such a partition is NULL."""
    values = ["abc", "", None]
    files = []
    for at, value in enumerate(values):
        schema = pa.schema([numbered("id", pa.int64(), 1), numbered("part", pa.string(), 2)])
        table = pa.table([[at], pa.array([value], pa.string())], schema=schema)
        files.append(write(tmp_path / f"{at}.parquet", table))
    base = make_task(tmp_path, files, [column(1, "id", "long"), column(2, "part", "string")])
    tasks = {op: replace(base, row_filter=_json(reference(op, 2, ""))) for op in PREFIXES}
    spec = (PartitionField("part", "truncate[2]", source_id=2, field_id=1000),)
    partitions = tuple((each and each[:2],) for each in values)
    assert check_same(natives, tasks, tmp_path, spec=spec, partitions=partitions) == 2


def test_files_of_other_writers(natives: Sparks, tmp_path: Path):
    """They have no ids. Iceberg takes milliseconds for microseconds: rows of 2023 would pass as of 1970."""
    moments = pa.array([0, 1_700_000_000_000, None], pa.timestamp("ms"))
    count = pa.array([1, 65_535, None], pa.uint16())
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "at": moments, "count": count})
    fields = [column(1, "id", "long"), column(2, "at", "timestamp"), column(3, "count", "int")]
    names = _json([{"field-id": each["id"], "names": [each["name"]]} for each in fields])
    base = make_task(tmp_path, [write(tmp_path / "f.parquet", table)], fields, name_mapping=names)
    tasks = {
        "all": base,
        "before": replace(base, row_filter=_json(reference("lt", 2, "2020-01-01T00:00:00"))),
        "after": replace(base, row_filter=_json(reference("gt", 2, "2020-01-01T00:00:00"))),
    }
    assert check_same(natives, tasks, tmp_path) == 5


def test_equality_deletes_by_bytes_of_one_length(natives: Sparks, tmp_path: Path):
    """Iceberg keeps the last value of the file."""
    schema = pa.schema([numbered("id", pa.int64(), 1), numbered("key", pa.binary(2), 2)])
    keys = [b"aa", b"bb", b"cc", None]
    file = write(tmp_path / "f.parquet", pa.table([range(4), pa.array(keys, pa.binary(2))], schema=schema))
    gone = pa.table([pa.array([b"aa", b"cc"], pa.binary(2))], schema=pa.schema([schema.field(1)]))
    task = make_task(tmp_path, [file], [column(1, "id", "long"), column(2, "key", "fixed[2]")])
    task = deleting(task, write_equality(tmp_path / "e.parquet", gone, [2]))
    assert check_same(natives, {"fixed": task}, tmp_path) == 2


def test_dates_that_became_timestamps(natives: Sparks, tmp_path: Path):
    schema = pa.schema([numbered("id", pa.int64(), 1), numbered("at", pa.date32(), 2)])
    days = pa.array([0, -1], pa.int32()).cast(pa.date32())
    file = write(tmp_path / "f.parquet", pa.table([[1, 2], days], schema=schema))
    task = make_task(tmp_path, [file], [column(1, "id", "long"), column(2, "at", "timestamp")])
    earlier = {"type": "struct", "schema-id": 3, "fields": [column(2, "at", "date")]}
    assert check_same(natives, {"dates": task}, tmp_path, version=3, schemas=(earlier,)) == 2


def test_names_of_the_columns_of_iceberg(natives: Sparks, tmp_path: Path):
    schema = pa.schema([numbered("_file", pa.int64(), 1), numbered("_deleted", pa.int64(), 2)])
    file = write(tmp_path / "f.parquet", pa.table([[1, 2], [0, 1]], schema=schema))
    task = make_task(tmp_path, [file], [column(1, "_file", "long"), column(2, "_deleted", "long")])
    task = replace(task, row_filter=_json(reference("eq", 2, 0)))
    assert check_same(natives, {"names": task}, tmp_path) == 1


def test_counting_needs_no_columns(natives: Sparks, tmp_path: Path):
    task = replace(make_base(tmp_path, row_filter=reference("eq", 2, "n1")), columns=())
    assert natives.rows("SELECT count(*) FROM cyn_0", to_relation(task, tmp_path)) == [(ROWS // 10,)]
    # Nobody sees anything: a mapping that has no value for the user.
    nothing = replace(task, columns=(1,), row_filter=b"false")
    assert natives.rows("SELECT count(id) FROM cyn_0", to_relation(nothing, tmp_path)) == [(0,)]


def test_several_relations_in_one_statement(natives: Sparks, tmp_path: Path):
    """Two mentions of one table, each governed by itself, joined with rows of the coordinator's own."""
    one = make_base(tmp_path / "one", row_filter=reference("lt", 1, 5))
    other = replace(one, row_filter=_json(reference("gt", 1, 2)), masks=(Mask(2, "mask-alphanum"),))
    own = relation("cyn_2", {"id": LONG}, [{"id": 3}, {"id": 4}, {"id": 5}])
    found = natives.rows(
        "SELECT a.name, b.name FROM cyn_0 a JOIN cyn_1 b USING (id) JOIN cyn_2 c USING (id) ORDER BY 1",
        to_relation(one, tmp_path / "one"),
        to_relation(other, tmp_path / "one", "cyn_1"),
        own,
        columns=("a", "b"),
    )
    assert found == [("n3", "xn"), ("n4", "xn")]


def test_local_files_outside_of_the_table_are_not_read(natives: Sparks, tmp_path: Path):
    """Whoever writes a table's manifests may name any file of the machine there."""
    task = make_base(tmp_path / "other")
    place = tmp_path / "table"
    place.mkdir()
    task = replace(task, file_roots=(str(tmp_path),))
    strange = to_relation(replace(task, places=(str(place),)), place)
    with pytest.raises(NotReadable, match="outside"):
        natives.rows("SELECT id FROM cyn_0", strange)
    # Manifests elsewhere are not even opened.
    for elsewhere in (str(tmp_path / "other"), "http://127.0.0.1:1/table"):
        away = to_relation(replace(task, places=(str(place),)), elsewhere, put=lambda path, data: None)
        with pytest.raises(NotReadable, match="outside"):
            natives.rows("SELECT id FROM cyn_0", away)
    linked = place / "link"
    linked.symlink_to(tmp_path / "other")
    files = tuple(replace(each, path=each.path.replace("/other/", "/table/link/")) for each in task.files)
    with pytest.raises(NotReadable, match="outside"):
        natives.rows(
            "SELECT id FROM cyn_0", to_relation(replace(task, files=files, places=(str(place),)), place)
        )
    unlisted = to_relation(replace(task, file_roots=()), tmp_path / "other")
    with pytest.raises(NotReadable, match="file_locations"):
        natives.rows("SELECT id FROM cyn_0", unlisted)
    assert len(read_rows(task)) == ROWS


def _json(filter_: Any) -> bytes:
    return msgspec.json.encode(filter_)


def test_files_that_are_gone_are_an_error(natives: Sparks, tmp_path: Path):
    """Of data and of metadata; never missing rows, and no path."""
    for at, name in enumerate(("part-1.parquet", "list.avro")):
        place = tmp_path / f"{at}"
        given = to_relation(make_base(place), place)
        [gone] = place.rglob(name)
        gone.unlink()
        with pytest.raises(NotReadable, match="not there any more") as failed:
            natives.rows("SELECT sum(id) FROM cyn_0", given)
        assert str(tmp_path) not in str(failed.value)
