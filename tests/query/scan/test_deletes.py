"""Rows that were deleted are not there, however Iceberg deletes; damaged deletes are errors (I107)."""

import random
import struct
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.errors import NotReadable, OutOfMemory
from cynosure.query.scan_task import ScanTask
from cynosure.testing.scan_kit import read_rows, read_table, reference, task_from_arrow
from tests.query.scan.written import (
    column,
    make_blob,
    make_task,
    numbered,
    write,
    write_equality,
    write_positions,
    write_vector,
)

ROWS = 1_000


def make_base(directory: Path, **others: Any) -> ScanTask:
    table = pa.table(
        {"id": pa.array(range(ROWS), pa.int64()), "name": [f"n{each % 10}" for each in range(ROWS)]}
    )
    return task_from_arrow(directory, table, files=2, row_group_rows=70, batch_rows=64, **others)


def ids_of(task: ScanTask) -> list[int]:
    return [row["id"] for row in read_rows(task)]


def deleting(task: ScanTask, *deletes: Any, of: int = 0) -> ScanTask:
    files = list(task.files)
    files[of] = replace(files[of], deletes=tuple(range(len(deletes))))
    return replace(task, files=tuple(files), deletes=deletes)


def test_position_deletes(tmp_path: Path) -> None:
    task = make_base(tmp_path)
    first, second = (file.path for file in task.files)
    chance = random.Random(3)
    gone = chance.sample(range(500), 200)
    other = chance.sample(range(500), 50)
    one = write_positions(tmp_path / "d1", sorted((first, each) for each in gone[:150]))
    # Names both files, and some rows a second time.
    two = write_positions(
        tmp_path / "d2", [*((second, each) for each in other), *((first, each) for each in gone[100:])]
    )
    files = (replace(task.files[0], deletes=(0, 1)), replace(task.files[1], deletes=(1,)))
    found = ids_of(replace(task, files=files, deletes=(one, two)))
    assert found == [each for each in range(ROWS) if each not in gone and each - 500 not in other]
    # A delete that a file does not name does not count for it.
    assert len(ids_of(replace(task, files=(files[0], task.files[1]), deletes=(one, two)))) == ROWS - len(gone)


def test_deletes_come_before_the_filter_and_count_rows_of_the_file(tmp_path: Path) -> None:
    task = make_base(tmp_path, row_filter=reference("eq", 2, "n3"))
    gone = write_positions(tmp_path / "d", [(task.files[0].path, 3), (task.files[0].path, 4)])
    assert ids_of(deleting(task, gone)) == list(range(13, ROWS, 10))
    counted = replace(deleting(task, gone), columns=(), row_filter=b"true")
    assert sum(row["rows"] for row in read_rows(counted)) == ROWS - 2


def test_positions_in_a_part_of_a_file(tmp_path: Path) -> None:
    task = make_base(tmp_path)
    gone = write_positions(tmp_path / "d", [(task.files[0].path, each) for each in range(0, 500, 2)])
    whole = deleting(task, gone)
    file = whole.files[0]
    middle = file.size_bytes // 2
    low = ids_of(replace(whole, files=(replace(file, begin=0, end=middle),)))
    high = ids_of(replace(whole, files=(replace(file, begin=middle, end=file.size_bytes),)))
    assert low
    assert high
    assert low + high == list(range(1, 500, 2))


def test_deletion_vectors(tmp_path: Path) -> None:
    task = make_base(tmp_path)
    gone = [*range(0, 300), 303, 499]
    assert ids_of(deleting(task, write_vector(tmp_path / "v", gone))) == [
        each for each in range(ROWS) if each not in gone
    ]


def damage(blob: bytes) -> dict[str, bytes]:
    return {
        "checksum": blob[:-1] + bytes([blob[-1] ^ 1]),
        "content": blob[:20] + bytes([blob[20] ^ 1]) + blob[21:],
        "magic": blob[:4] + b"\0\0\0\0" + blob[8:],
        "length": struct.pack(">I", 5) + blob[4:],
        "cut": blob[:-8],
        "nothing": b"\0" * 13,
    }


@pytest.mark.parametrize("kind", damage(make_blob([1])))
def test_damaged_vectors(kind: str, tmp_path: Path) -> None:
    task = make_base(tmp_path)
    vector = write_vector(tmp_path / "v", [1, 2, 3], damage(make_blob([1, 2, 3]))[kind])
    with pytest.raises(NotReadable, match="deletion vector"):
        read_rows(deleting(task, vector))


def test_vectors_that_are_not_what_the_table_says(tmp_path: Path) -> None:
    task = make_base(tmp_path)
    vector = write_vector(tmp_path / "v", [1, 2, 3])
    for wrong in (
        replace(vector, record_count=2),
        replace(vector, offset=5),
        replace(vector, length=vector.size_bytes * 2),
        replace(vector, offset=-1),
        replace(vector, path=str(tmp_path / "none")),
    ):
        with pytest.raises(NotReadable):
            read_rows(deleting(task, wrong))
    for beyond in ([500], [2**40]):
        with pytest.raises(NotReadable, match="does not have"):
            read_rows(deleting(task, write_vector(tmp_path / "v", beyond)))


def test_positions_beyond_the_file_and_damaged_delete_files(tmp_path: Path) -> None:
    task = make_base(tmp_path)
    path = task.files[0].path
    for wrong in (-1, 500, 2**62):
        with pytest.raises(NotReadable, match="does not have"):
            read_rows(deleting(task, write_positions(tmp_path / "d", [(path, wrong)])))
    good = write_positions(tmp_path / "d", [(path, 1)])
    for bad in (
        replace(good, record_count=5),
        replace(good, format="avro"),
        replace(good, path=str(tmp_path.parent / "elsewhere")),
    ):
        with pytest.raises(NotReadable):
            read_rows(deleting(task, bad))
    (tmp_path / "d").write_bytes((tmp_path / "d").read_bytes()[:-20])
    with pytest.raises(NotReadable):
        read_rows(deleting(task, good))
    with pytest.raises(NotReadable, match="does not have"):
        read_rows(replace(task, files=(replace(task.files[0], deletes=(7,)),)))


# Equality deletes.


def people(directory: Path, rows: list[tuple[Any, ...]]) -> ScanTask:
    """Columns a (int in the file, long in the table), b, s.x beside s.y, which is required; d is new."""
    schema = pa.schema(
        [
            numbered("id", pa.int64(), 1),
            numbered("old_a", pa.int32(), 2),
            numbered("b", pa.string(), 3),
            numbered("s", pa.struct([numbered("x", pa.int32(), 5), numbered("y", pa.int32(), 7)]), 4),
        ]
    )
    table = pa.Table.from_pylist(
        [
            {"id": at, "old_a": a, "b": b, "s": None if x == "-" else {"x": x, "y": 0}}
            for at, (a, b, x) in enumerate(rows)
        ],
        schema=schema,
    )
    file = write(directory / "data", table, row_group_size=3)
    inner = {"type": "struct", "fields": [column(5, "x", "int"), column(7, "y", "int", required=True)]}
    fields = [
        column(1, "id", "long"),
        column(2, "a", "long"),
        column(3, "b", "string"),
        column(4, "s", inner),
        column(6, "d", "string", **{"initial-default": "new"}),
    ]
    return make_task(directory, [file], fields, columns=(1,), batch_rows=2)


PEOPLE = [
    (1, "x", 1),
    (1, "y", 2),
    (None, "x", None),
    (None, None, "-"),
    (2, None, 1),
    (2, "x", 2),
    (1, "x", 3),
]


def table_of(**columns: tuple[pa.DataType, int, list[Any]]) -> pa.Table:
    schema = pa.schema([numbered(name, type_, id_) for name, (type_, id_, _) in columns.items()])
    return pa.table([pa.array(values, type_) for type_, _, values in columns.values()], schema=schema)


@pytest.mark.parametrize(
    ("deleted", "ids", "left"),
    [
        (table_of(a=(pa.int64(), 2, [1])), [2], [2, 3, 4, 5]),
        (table_of(a=(pa.int32(), 2, [1, None])), [2], [4, 5]),
        (table_of(a=(pa.int64(), 2, [1]), b=(pa.string(), 3, ["x"])), [2, 3], [1, 2, 3, 4, 5]),
        (table_of(b=(pa.string(), 3, ["x"]), a=(pa.int64(), 2, [None])), [3, 2], [0, 1, 3, 4, 5, 6]),
        (table_of(a=(pa.int64(), 2, [None, 2]), b=(pa.string(), 3, [None, None])), [2, 3], [0, 1, 2, 5, 6]),
        # Pairs, not all combinations.
        (table_of(a=(pa.int64(), 2, [1, 2]), b=(pa.string(), 3, ["y", "x"])), [2, 3], [0, 2, 3, 4, 6]),
        (table_of(a=(pa.int64(), 2, [])), [2], list(range(7))),
        (table_of(d=(pa.string(), 6, ["other"])), [6], list(range(7))),
        (table_of(d=(pa.string(), 6, ["new"])), [6], []),
        (
            table_of(s=(pa.struct([numbered("x", pa.int32(), 5)]), 4, [{"x": 1}, {"x": None}])),
            [5],
            [1, 5, 6],
        ),
    ],
)
def test_equality_deletes(deleted: pa.Table, ids: list[int], left: list[int], tmp_path: Path) -> None:
    task = people(tmp_path, PEOPLE)
    assert ids_of(deleting(task, write_equality(tmp_path / "e", deleted, ids))) == left


def test_several_equality_deletes_and_positions_together(tmp_path: Path) -> None:
    task = people(tmp_path, PEOPLE)
    by_a = write_equality(tmp_path / "e1", table_of(a=(pa.int64(), 2, [2])), [2])
    more_a = write_equality(tmp_path / "e2", table_of(a=(pa.int64(), 2, [None])), [2])
    by_both = write_equality(
        tmp_path / "e3", table_of(a=(pa.int64(), 2, [1]), b=(pa.string(), 3, ["y"])), [2, 3]
    )
    positions = write_positions(tmp_path / "d", [(task.files[0].path, 6)])
    assert ids_of(deleting(task, by_a, more_a, by_both, positions)) == [0]
    filtered = replace(task, row_filter=msgspec.json.encode(reference("gt", 1, 0)))
    assert ids_of(deleting(filtered, by_a, more_a, by_both, positions)) == []


def test_random_equality_deletes(tmp_path: Path) -> None:
    chance = random.Random(11)
    for turn in range(15):
        rows = [
            (
                chance.choice([None, 1, 2, 3]),
                chance.choice([None, "x", "y"]),
                chance.choice(["-", None, 1, 2]),
            )
            for _ in range(60)
        ]
        task = people(tmp_path, rows)
        gone = chance.sample([(a, b) for a in (None, 1, 2, 3) for b in (None, "x", "y")], 4)
        deletes = write_equality(
            tmp_path / f"e{turn}",
            table_of(
                a=(pa.int32(), 2, [each[0] for each in gone]), b=(pa.string(), 3, [each[1] for each in gone])
            ),
            [2, 3],
        )
        assert ids_of(deleting(task, deletes)) == [at for at, row in enumerate(rows) if row[:2] not in gone]


@pytest.mark.parametrize(("type_", "wanted"), [("f", "float"), ("f", "double"), ("d", "double")])
def test_all_nans_are_one_value_and_the_zeros_are_two(type_: str, wanted: str, tmp_path: Path) -> None:
    quiet, negative, other = {
        "f": (0x7FC00000, 0xFFC00000, 0x7FC00001),
        "d": (0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001),
    }[type_]
    arrow, bits = (pa.float32(), pa.uint32()) if type_ == "f" else (pa.float64(), pa.uint64())

    def make(values: list[int]) -> pa.Table:
        fields = pa.schema([numbered("id", pa.int64(), 1), numbered("x", arrow, 2)])
        return pa.table([pa.array(range(len(values))), pa.array(values, bits).view(arrow)], schema=fields)

    minus_zero = 1 << (bits.bit_width - 1)
    file = write(tmp_path / "f.parquet", make([quiet, negative, other, 0, minus_zero, quiet - 1]))
    task = make_task(tmp_path, [file], [column(1, "id", "long"), column(2, "x", wanted)], columns=(1,))
    by_nan = write_equality(tmp_path / "e1", make([negative]).select(["x"]), [2])
    by_zero = write_equality(tmp_path / "e2", make([minus_zero]).select(["x"]), [2])
    by_both = write_equality(tmp_path / "e3", make([quiet, other, negative]), [1, 2])
    # One less than the first NaN is a NaN of another kind.
    assert ids_of(deleting(task, by_nan)) == [3, 4]
    assert ids_of(deleting(task, by_zero)) == [0, 1, 2, 3, 5]
    assert ids_of(deleting(task, by_both)) == [3, 4, 5]


def test_equality_deletes_that_cannot_be_applied(tmp_path: Path) -> None:
    task = people(tmp_path, PEOPLE)
    good = write_equality(tmp_path / "e", table_of(a=(pa.int64(), 2, [1])), [2])
    for ids in ([99], [3], []):
        with pytest.raises(NotReadable):
            read_rows(deleting(task, replace(good, equality_ids=tuple(ids))))
    other = write_equality(tmp_path / "o", table_of(a=(pa.string(), 2, ["1"])), [2])
    with pytest.raises(NotReadable, match="another type"):
        read_rows(deleting(task, other))


def test_deletes_count_towards_the_memory_limit(tmp_path: Path) -> None:
    task = replace(make_base(tmp_path), memory_limit_bytes=200_000)
    assert read_table(task).num_rows == ROWS
    gone = write_positions(tmp_path / "d", [(task.files[0].path, each % 500) for each in range(50_000)])
    with pytest.raises(OutOfMemory, match="memory_limit") as failed:
        read_rows(deleting(task, gone))
    assert failed.value.details["limit_bytes"] == 200_000
