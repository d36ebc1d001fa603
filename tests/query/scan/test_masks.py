"""Each action, against plain Python, alone and inside structs; and what does not fit is refused (I101)."""

import hashlib
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Mask
from cynosure.testing.scan_kit import SALT, read_rows, read_table, reference, task_from_arrow

TEXTS = [None, "", "a", "abcd", "abcde", "4111-1111-1111-4444", "ann@x.org", "Zürich 1",
         "\U0001f600\U0001f6001", "(1),2.3", "a\nb", "٣", "x" * 100]  # fmt: skip
KEPT = "(),.-@"


def alphanum(text: str) -> str:
    return "".join("n" if each in "0123456789" else each if each in KEPT else "x" for each in text)


EXPECTED = {
    "mask-alphanum": alphanum,
    "show-first-4": lambda text: text[:4] + alphanum(text[4:]),
    "show-last-4": lambda text: alphanum(text[:-4]) + text[-4:] if len(text) > 4 else text,
    "sha-256-global": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "sha-256-query-local": lambda text: hashlib.sha256(SALT + text.encode()).hexdigest(),
}


@pytest.mark.parametrize("action", EXPECTED)
@pytest.mark.parametrize("texts", [TEXTS, [each for each in TEXTS if each is None or each.isascii()]])
def test_texts(action: Any, texts: list[str | None], tmp_path: Path) -> None:
    found = read_rows(task_from_arrow(tmp_path, pa.table({"text": texts * 3}), masks={"text": action}))
    expected = [None if each is None else EXPECTED[action](each) for each in texts * 3]
    assert [row["text"] for row in found] == expected


def test_a_mask_of_a_slice_shows_the_slice(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(100), pa.int64()), "text": [f"t{each:03}" for each in range(100)]})
    task = task_from_arrow(
        tmp_path, table, masks={"text": "show-last-4"}, row_filter=reference("gt-eq", 1, 90), batch_rows=3
    )
    assert [row["text"] for row in read_rows(task)] == [f"t{each:03}" for each in range(90, 100)]


@pytest.mark.parametrize("unit", ["year", "month"])
@pytest.mark.parametrize("type_", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC")], ids=str)
def test_dates_before_and_after_1970(unit: str, type_: pa.DataType, tmp_path: Path) -> None:
    chance = random.Random(7)
    days = [chance.randrange(-719_162, 2_932_897) for _ in range(300)] + [-1, 0, -719_162, 2_932_896]
    numbers = days if type_ == pa.date32() else [each * 86_400_000_000 + 86_399_999_999 for each in days]
    stored = pa.array([*numbers, None], pa.int32() if type_ == pa.date32() else pa.int64()).cast(type_)
    task = task_from_arrow(tmp_path, pa.table({"at": stored}), masks={"at": f"truncate-to-{unit}"})  # type: ignore[dict-item]
    found = read_table(task)
    assert found.schema.field("at").type == type_
    expected = []
    for each in days:
        day = date.fromordinal(each + date(1970, 1, 1).toordinal()).replace(day=1)
        expected.append(day.replace(month=1) if unit == "year" else day)
    midnight = found.column("at").to_pylist()
    assert midnight[-1] is None
    if type_ == pa.date32():
        assert midnight[:-1] == expected
    else:
        zone = UTC if type_.tz else None
        assert midnight[:-1] == [datetime(each.year, each.month, 1, tzinfo=zone) for each in expected]


@pytest.mark.parametrize("type_", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC")], ids=str)
def test_dates_that_arrow_would_get_wrong(type_: pa.DataType, tmp_path: Path) -> None:
    """Beyond the years 1 to 9999, and to 32767: what Spark shows of them (`trunc`)."""
    days = [-1_000_000, -719_163, 2_932_897, 5_000_000, 20_000_000]
    months = [-1_000_003, -719_193, 2_932_897, 4_999_986, 19_999_979]
    years = [-1_000_034, -719_528, 2_932_897, 4_999_805, 19_999_948]
    number, per_day = (pa.int32(), 1) if type_ == pa.date32() else (pa.int64(), 86_400_000_000)
    table = pa.table({"at": pa.array([each * per_day for each in days], number).cast(type_)})
    for unit, expected in (("month", months), ("year", years)):
        found = read_table(task_from_arrow(tmp_path, table, masks={"at": f"truncate-to-{unit}"}))  # type: ignore[dict-item]
        numbers = found.column("at").combine_chunks().view(number).to_pylist()
        assert numbers == [each * per_day for each in expected]


FIXED = {
    pa.bool_(): (True, False),
    pa.int32(): (5, 0),
    pa.int64(): (5, 0),
    pa.float32(): (5.0, 0.0),
    pa.float64(): (5.0, 0.0),
    pa.decimal128(9, 2): (Decimal("5.00"), Decimal("0.00")),
    pa.string(): ("secret", "XXXXXXXX"),
    pa.binary(): (b"secret", b""),
    pa.binary(3): (b"abc", b"\0\0\0"),
    pa.date32(): (date(2020, 5, 5), date(1970, 1, 1)),
    pa.timestamp("us"): (datetime(2020, 5, 5), datetime(1970, 1, 1)),  # noqa: DTZ001
    pa.timestamp("us", tz="UTC"): (datetime(2020, 5, 5, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
}


@pytest.mark.parametrize("type_", FIXED, ids=str)
def test_fixed_values_and_null(type_: pa.DataType, tmp_path: Path) -> None:
    value, shown = FIXED[type_]
    table = pa.table({"it": pa.array([value, None], type_)})
    fixed = task_from_arrow(tmp_path, table, masks={"it": "mask-to-fixed-value"})
    assert [row["it"] for row in read_rows(fixed)] == [shown, shown]
    hidden = task_from_arrow(tmp_path, table, masks={"it": "replace-with-null"})
    assert [row["it"] for row in read_rows(hidden)] == [None, None]
    assert read_table(hidden).schema == read_table(fixed).schema


def test_fields_in_structs(tmp_path: Path) -> None:
    inner = pa.struct([("zip", pa.string()), ("deep", pa.struct([("n", pa.int32())]))])
    rows = [{"zip": "12-ab", "deep": {"n": 5}}, None, {"zip": None, "deep": None}]
    task = task_from_arrow(tmp_path, pa.table({"address": pa.array(rows, inner)}))
    ids = {"zip": 2, "deep": 3, "n": 4}
    masked = replace(task, masks=(Mask(ids["zip"], "mask-alphanum"), Mask(ids["n"], "mask-to-fixed-value")))
    assert [row["address"] for row in read_rows(masked)] == [
        {"zip": "nn-xx", "deep": {"n": 0}},
        None,
        {"zip": None, "deep": None},
    ]
    whole = replace(task, masks=(Mask(1, "replace-with-null"),))
    assert [row["address"] for row in read_rows(whole)] == [None, None, None]


def test_the_filter_sees_what_the_mask_hides(tmp_path: Path) -> None:
    table = pa.table({"name": ["ann", "bob", "eve"]})
    task = task_from_arrow(
        tmp_path, table, row_filter=reference("eq", 1, "bob"), masks={"name": "mask-to-fixed-value"}
    )
    assert read_rows(task) == [{"name": "XXXXXXXX"}]
    # A filter on what is shown would find all of them.
    task = task_from_arrow(
        tmp_path, table, row_filter=reference("eq", 1, "XXXXXXXX"), masks={"name": "mask-to-fixed-value"}
    )
    assert read_rows(task) == []


@pytest.mark.parametrize(
    ("type_", "action"),
    [
        (pa.int32(), "mask-alphanum"),
        (pa.int32(), "sha-256-global"),
        (pa.string(), "truncate-to-year"),
        (pa.list_(pa.int32()), "mask-to-fixed-value"),
        (pa.binary(), "show-first-4"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(type_: pa.DataType, action: Any, tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, pa.table({"it": pa.array([None], type_)}), masks={"it": action})
    with pytest.raises(NotReadable, match="mask does not fit"):
        read_rows(task)


def test_null_does_not_fit_required_columns(tmp_path: Path) -> None:
    table = pa.table({"it": [1]}, schema=pa.schema([pa.field("it", pa.int64(), nullable=False)]))
    with pytest.raises(NotReadable, match="mask does not fit"):
        read_rows(task_from_arrow(tmp_path, table, masks={"it": "replace-with-null"}))


def test_masks_inside_of_lists_are_refused(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, pa.table({"it": pa.array([["a"]], pa.list_(pa.string()))}))
    with pytest.raises(NotReadable, match="inside a list or map"):
        read_rows(replace(task, masks=(Mask(2, "mask-alphanum"),)))


def test_a_short_salt_is_refused(tmp_path: Path) -> None:
    table = pa.table({"it": ["a"]})
    with pytest.raises(NotReadable, match="salt"):
        read_rows(task_from_arrow(tmp_path, table, masks={"it": "sha-256-query-local"}, salt=b"short"))


@pytest.mark.parametrize("masked", [1, 2])
def test_predicates_on_masked_columns_are_refused(masked: int, tmp_path: Path) -> None:
    people = pa.array([{"name": "ann"}], pa.struct([("name", pa.string())]))
    task = task_from_arrow(tmp_path, pa.table({"it": people}))
    wanted = msgspec.json.encode(reference("eq", 2, "ann"))
    with pytest.raises(NotReadable, match="masked column"):
        read_rows(replace(task, predicates=wanted, masks=(Mask(masked, "replace-with-null"),)))
