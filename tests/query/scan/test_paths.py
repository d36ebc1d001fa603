"""The fast and the complete path give the same rows, and the ones that the oracle says."""

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from cynosure.iceberg.single_value import write_value
from cynosure.iceberg.types import parse_type
from cynosure.query.errors import NotReadable
from cynosure.query.scan import fast, governed
from cynosure.query.scan_task import ScanTask
from cynosure.testing.scan_kit import iceberg_type, read_table, reference, task_from_arrow
from tests.query.scan.oracle import both, either, passes
from tests.query.scan.written import (
    chunks_of,
    edit_footer,
    row_groups_of,
    write_equality,
    write_positions,
)

TEXTS = ["", "a", "AIR", "air", "Zürich", "z\U0001f600", "a\0b", "AIRPORT", "~", "\n"]
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False]),
    "small": (pa.int32(), [-(2**31), -1, 0, 1, 7, 2**31 - 1]),
    "big": (pa.int64(), [-(2**63), -1, 0, 1, 7, 2**63 - 1]),
    "single": (pa.float32(), [-1.5, -0.0, 0.0, 2.5, math.nan, math.inf, -math.inf]),
    "twice": (pa.float64(), [-1.5, -0.0, 0.0, 2.5, math.nan, math.inf, -math.inf]),
    "money": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("9999999.99")]),
    "wide": (pa.decimal128(38, 10), [Decimal("-1.5"), Decimal(0), Decimal("9e27")]),
    "text": (pa.string(), TEXTS),
    "day": (pa.int32(), [-719162, -1, 0, 1, 20_000, 2_932_896]),
    "when": (pa.int64(), [-1, 0, 1, 1_700_000_000_123_456]),
    "zoned": (pa.int64(), [-1, 0, 1, 1_700_000_000_123_456]),
    "raw": (pa.binary(), [b"", b"\xff", b"\0", b"abc"]),
}
STORED = {"day": pa.date32(), "when": pa.timestamp("us"), "zoned": pa.timestamp("us", tz="UTC")}
IDS = {name: at for at, name in enumerate(TYPES, 1)}
ORDERED = ["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq"]


def make_table(chance: random.Random, rows: int) -> tuple[pa.Table, list[dict[int, Any]]]:
    columns, plain = {}, {}
    for name, (type_, values) in TYPES.items():
        found = [None if chance.random() < 0.2 else chance.choice(values) for _ in range(rows)]
        if chance.random() < 0.3:
            # So that statistics of row groups differ.
            found.sort(key=lambda each: (each is None, -1 if each is None else values.index(each)))
        made = pa.array(found, type_)
        columns[name] = made.cast(STORED[name]) if name in STORED else made
        plain[name] = pa.array(found, type_).to_pylist()
    rows_of = [{IDS[name]: plain[name][at] for name in TYPES} for at in range(rows)]
    return pa.table(columns), rows_of


def constant(name: str, value: Any) -> Any:
    """As the protocol writes a value, and as the oracle compares it."""
    type_ = parse_type(iceberg_type(STORED.get(name, TYPES[name][0])))
    return write_value(type_, value)


def make_filter(chance: random.Random, depth: int) -> tuple[Any, Any]:
    """An expression as it is sent, and the same with values for the oracle."""
    if depth and chance.random() < 0.6:
        left, right = make_filter(chance, depth - 1), make_filter(chance, depth - 1)
        join = chance.choice([both, either])
        return join(left[0], right[0]), join(left[1], right[1])
    if chance.random() < 0.05:
        answer = chance.random() < 0.5
        return answer, answer
    name = chance.choice(list(TYPES))
    id_ = IDS[name]
    values = [each for each in TYPES[name][1] if not isinstance(each, float) or math.isfinite(each)]
    kind = chance.choice(["null", "order", "order", "set", "prefix", "nan"])
    if kind == "nan" and name in ("single", "twice"):
        leaf = reference(chance.choice(["is-nan", "not-nan"]), id_)
        return leaf, leaf
    if kind == "set":
        chosen = chance.sample(values, chance.randint(1, len(values)))
        op = chance.choice(["in", "not-in"])
        return reference(op, id_, [constant(name, each) for each in chosen]), reference(op, id_, chosen)
    if kind == "prefix" and name == "text":
        op = chance.choice(["starts-with", "not-starts-with"])
        leaf = reference(op, id_, chance.choice([each for each in TEXTS if each]))
        return leaf, leaf
    if kind == "null" or name == "flag":
        leaf = reference(chance.choice(["is-null", "not-null"]), id_)
        return leaf, leaf
    op, value = chance.choice(ORDERED), chance.choice(values)
    return (
        {**reference(op, id_), "value": constant(name, value)},
        {**reference(op, id_), "value": value},
    )


def plain_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    stored = {
        name: table.column(name).cast(TYPES[name][0]) if name in STORED else table.column(name)
        for name in table.column_names
    }
    lists = [column.to_pylist() for column in stored.values()]
    return [tuple(map(repr, row)) for row in zip(*lists, strict=True)]


def read_both(task: ScanTask, without_fast: Any) -> tuple[pa.Table, pa.Table]:
    quick = read_table(task)
    with without_fast():
        return quick, read_table(task)


@pytest.mark.parametrize("seed", range(25))
def test_random_tables_and_filters(seed: int, tmp_path: Path, without_fast: Any) -> None:
    chance = random.Random(seed)
    rows = chance.choice([0, 1, 50, 700])
    table, plain = make_table(chance, rows)
    names = chance.sample(list(TYPES), chance.randint(1, len(TYPES)))
    base = task_from_arrow(
        tmp_path,
        table,
        files=chance.choice([1, 3]),
        columns=names,
        row_group_rows=chance.choice([7, 100, 1000]),
        batch_rows=chance.choice([5, 64, 16_384]),
    )
    for _ in range(8):
        sent, meant = make_filter(chance, 3)
        wanted_sent, wanted = make_filter(chance, 1) if chance.random() < 0.5 else (True, True)
        task = replace(
            base, row_filter=msgspec.json.encode(sent), predicates=msgspec.json.encode(wanted_sent)
        )
        expected = [
            tuple(repr(row[IDS[name]]) for name in names)
            for row in plain
            if passes(meant, row) is True and passes(wanted, row) is True
        ]
        quick, complete = read_both(task, without_fast)
        assert plain_rows(complete) == expected
        assert plain_rows(quick) == expected
        assert quick.schema == complete.schema


@pytest.mark.parametrize("seed", range(8))
def test_random_deletes(seed: int, tmp_path: Path, without_fast: Any) -> None:
    chance = random.Random(seed)
    table, plain = make_table(chance, 900)
    base = task_from_arrow(
        tmp_path, table, row_group_rows=chance.choice([90, 400, 1000]), batch_rows=chance.choice([64, 16_384])
    )
    [file] = base.files
    gone = set(chance.sample(range(900), chance.choice([0, 1, 300])))
    values = set(chance.sample([None, *TYPES["small"][1]], 2))
    column = pa.field("small", pa.int32(), metadata={"PARQUET:field_id": str(IDS["small"])})
    by_value = pa.table([pa.array(list(values), pa.int32())], schema=pa.schema([column]))
    deletes = (
        write_positions(tmp_path / "p", sorted((file.path, each) for each in gone)),
        write_equality(tmp_path / "e", by_value, [IDS["small"]]),
    )
    half = file.size_bytes // 2
    for part in (file, replace(file, begin=half, end=file.size_bytes), replace(file, begin=0, end=half)):
        sent, meant = make_filter(chance, 2)
        task = replace(
            base,
            files=(replace(part, deletes=(0, 1)),),
            deletes=deletes,
            columns=(IDS["big"], IDS["text"]),
            row_filter=msgspec.json.encode(sent),
        )
        quick, complete = read_both(task, without_fast)
        assert plain_rows(quick) == plain_rows(complete)
        if part is file:
            assert plain_rows(quick) == [
                (repr(row[IDS["big"]]), repr(row[IDS["text"]]))
                for at, row in enumerate(plain)
                if at not in gone and row[IDS["small"]] not in values and passes(meant, row) is True
            ]


def test_deletes_go_the_fast_path(tmp_path: Path, only_fast: None) -> None:
    table, _ = make_table(random.Random(1), 500)
    task = task_from_arrow(tmp_path, table, row_group_rows=100, columns=["text"])
    [file] = task.files
    gone = write_positions(tmp_path / "p", [(file.path, each) for each in range(0, 500, 5)])
    deleting = replace(task, files=(replace(file, deletes=(0,)),), deletes=(gone,))
    assert read_table(deleting).num_rows == 400


def test_plain_files_go_the_fast_path(tmp_path: Path, only_fast: None) -> None:
    table, plain = make_table(random.Random(1), 500)
    task = task_from_arrow(tmp_path, table, row_group_rows=100)
    assert read_table(task).num_rows == 500
    filtered = task_from_arrow(tmp_path, table, row_filter=reference("gt", IDS["small"], 0))
    assert read_table(filtered).num_rows == sum((row[IDS["small"]] or 0) > 0 for row in plain)


@pytest.mark.parametrize("parts", [2, 3, 5, 11])
def test_parts_of_a_file_are_the_file(parts: int, tmp_path: Path, only_fast: None) -> None:
    table = pa.table(
        {"id": pa.array(range(5_000), pa.int64()), "text": [str(each) * 9 for each in range(5_000)]}
    )
    whole = task_from_arrow(tmp_path, table, row_group_rows=500, row_filter=reference("gt", 1, 10))
    [file] = whole.files
    borders = [at * file.size_bytes // parts for at in range(parts + 1)]
    found: list[int] = []
    for begin, end in pairwise(borders):
        part = replace(whole, files=(replace(file, begin=begin, end=end),))
        found += read_table(part).column("id").to_pylist()
    assert sorted(found) == list(range(11, 5_000))


def test_parts_of_a_file_on_the_complete_path(tmp_path: Path, without_fast: Any) -> None:
    table = pa.table({"id": pa.array(range(5_000), pa.int64())})
    whole = task_from_arrow(tmp_path, table, row_group_rows=500)
    [file] = whole.files
    middle = file.size_bytes // 2
    with without_fast():
        low = read_table(replace(whole, files=(replace(file, begin=0, end=middle),)))
        high = read_table(replace(whole, files=(replace(file, begin=middle, end=file.size_bytes),)))
    assert 0 < low.num_rows < 5_000
    assert low.column("id").to_pylist() + high.column("id").to_pylist() == list(range(5_000))


def test_a_filter_on_a_column_that_is_not_shown(tmp_path: Path, without_fast: Any) -> None:
    table = pa.table(
        {"id": pa.array(range(100), pa.int64()), "secret": [f"s{each % 3}" for each in range(100)]}
    )
    task = task_from_arrow(tmp_path, table, columns=["id"], row_filter=reference("eq", 2, "s1"))
    quick, complete = read_both(task, without_fast)
    assert quick.column_names == ["id"]
    assert quick == complete
    assert quick.column("id").to_pylist() == list(range(1, 100, 3))
    assert governed.output_schema(task) == quick.schema


def damage(path: Path, column: int, row_group: int, *, behind: float = 0.0) -> None:
    """Make a column of a row group garbage, from some part of it on."""
    whole = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(row_group).column(column)
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    begin = first + int(chunk.total_compressed_size * behind)
    end = first + chunk.total_compressed_size
    path.write_bytes(whole[:begin] + b"\xff" * (end - begin) + whole[end:])


def test_columns_are_decoded_for_rows_that_pass_only(tmp_path: Path, only_fast: None) -> None:
    """By what is not noticed: pages of rows that do not pass are garbage."""
    rows = 20_000
    # Statistics of every page admit 51; only the first rows have it.
    found = [51 if at < 10 else at % 50 * 2 for at in range(rows)]
    table = pa.table({"k": pa.array(found, pa.int64()), "text": [f"{at:0100d}" for at in range(rows)]})
    task = task_from_arrow(tmp_path, table, row_filter=reference("eq", 1, 51))
    path = Path(task.files[0].path)
    pq.write_table(
        pq.read_table(path), path, use_dictionary=False, data_page_size=4_096, write_page_index=True
    )
    damage(path, 1, 0, behind=0.5)
    task = replace(task, files=(replace(task.files[0], size_bytes=path.stat().st_size),))
    assert read_table(task).column("text").to_pylist() == [f"{at:0100d}" for at in range(10)]
    with pytest.raises((NotReadable, AssertionError)):
        read_table(replace(task, row_filter=b"true"))


def test_row_groups_that_cannot_pass_are_not_decoded(tmp_path: Path, without_fast: Any) -> None:
    table = pa.table(
        {"id": pa.array(range(1_000), pa.int64()), "text": [f"{at:050d}" for at in range(1_000)]}
    )
    task = task_from_arrow(tmp_path, table, row_group_rows=500, row_filter=reference("lt", 1, 500))
    damage(Path(task.files[0].path), 1, 1)
    with without_fast():
        assert read_table(task).num_rows == 500
        with pytest.raises(NotReadable):
            read_table(replace(task, row_filter=b"true"))


# Footers as other writers make them.

NUMBERS = pa.table(
    {
        "id": pa.array(range(1_000), pa.int64()),
        "x": pa.array([None if at % 100 == 3 else at for at in range(1_000)], pa.int64()),
    }
)


def edited(directory: Path, edit: Any, *, table: pa.Table | None = None, **others: Any) -> ScanTask:
    """A task over ten row groups of `NUMBERS`, or of another table, whose footer says something else."""
    task = task_from_arrow(directory, NUMBERS, **others)
    [file] = task.files
    path = Path(file.path)
    written = pq.read_table(path) if table is None else table
    pq.write_table(written, path, row_group_size=100, use_dictionary=False, store_schema=False)
    edit_footer(path, edit)
    return replace(task, files=(replace(file, size_bytes=path.stat().st_size),))


def say_no_dictionary_is_at_0(footer: dict[int, Any]) -> None:
    for chunk in chunks_of(footer):
        chunk[11] = chunk[9][0], 0


def test_writers_that_say_0_for_no_dictionary(tmp_path: Path, without_fast: Any) -> None:
    """DataFusion takes that for where a row group begins: all of them are in its first range."""
    task = edited(tmp_path, say_no_dictionary_is_at_0, row_filter=reference("eq", 1, 555))
    quick, complete = read_both(task, without_fast)
    assert quick.column("id").to_pylist() == complete.column("id").to_pylist() == [555]


def test_row_groups_that_are_not_in_the_order_of_their_bytes(tmp_path: Path, without_fast: Any) -> None:
    task = edited(tmp_path, lambda footer: row_groups_of(footer).reverse(), columns=["id"])
    [file] = task.files
    gone = write_positions(tmp_path / "p", [(file.path, each) for each in range(150)])
    # The first rows of the file are those of its last row group.
    expected = [
        *range(850, 900),
        *(each for at in range(7, -1, -1) for each in range(at * 100, at * 100 + 100)),
    ]
    for part, left in (
        (file, expected),
        (replace(file, begin=file.size_bytes // 2, end=file.size_bytes), None),
    ):
        deleting = replace(task, files=(replace(part, deletes=(0,)),), deletes=(gone,))
        quick, complete = read_both(deleting, without_fast)
        assert quick.column("id").to_pylist() == complete.column("id").to_pylist()
        assert left is None or quick.column("id").to_pylist() == left


def count_no_nulls(footer: dict[int, Any]) -> None:
    for chunk in chunks_of(footer):
        del chunk[12][1][3]


@pytest.mark.parametrize("also", [None, 5])
def test_statistics_that_do_not_count_nulls(also: int | None, tmp_path: Path, without_fast: Any) -> None:
    """DataFusion takes that for none; in files without ids, at least."""
    tested: Any = reference("is-null", 2)
    if also is not None:
        tested = either(tested, reference("eq", 2, also))
    mapping = b'[{"field-id":1,"names":["id"]},{"field-id":2,"names":["x"]}]'
    task = edited(tmp_path, count_no_nulls, table=NUMBERS, row_filter=tested, name_mapping=mapping)
    quick, complete = read_both(task, without_fast)
    assert quick == complete
    assert quick.num_rows == (10 if also is None else 11)


class PanicException(BaseException):
    """As DataFusion's, which is no `Exception`."""


@pytest.mark.parametrize("error", [PanicException("a row's value"), RuntimeError("a path")], ids=repr)
def test_what_fails_at_once_goes_the_complete_path(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(fast._FastScan, "_open", fail)
    task = task_from_arrow(tmp_path, pa.table({"id": pa.array(range(10), pa.int64())}))
    assert read_table(task).num_rows == 10


@pytest.mark.parametrize("error", [PanicException("a row's value"), RuntimeError("a path")], ids=repr)
def test_what_fails_later_says_nothing_of_rows(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, *_: object) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array([1], pa.int64())})
        raise error

    monkeypatch.setattr(fast._FastScan, "_open", fail)
    task = task_from_arrow(tmp_path, pa.table({"id": pa.array(range(10), pa.int64())}))
    with pytest.raises(NotReadable, match="cannot be read") as failed:
        read_table(task)
    assert "row's" not in str(failed.value)
    assert "path" not in str(failed.value)
