"""Filters and masks mean on Spark what they mean in the governed scan: all operators, types and actions."""

import math
import os
import random
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Mask, ScanTask
from cynosure.testing.scan_kit import reference
from tests.query.scan.written import column, make_task, numbered, write
from tests.query.spark.native.comparing import check_same, read_natively
from tests.query.spark.world import Sparks

NAN, INF = math.nan, math.inf
TENTH = 0.10000000149011612
"""As 32 bits have it."""
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - it has none
TEXTS = [
    "",
    "a",
    "abcd",
    "abcde",
    "4111-1111-1111-4444",
    "ann@x.org",
    "Zürich 1",
    "\U0001f600\U0001f6001",
    "(1),2.3",
    "a\nb'\\${x}%",
    "٣",
    "\x00",
    "ﬁ",
]
UUIDS = [str(uuid.UUID(int=each)) for each in (0, 1, 2**127, 2**128 - 1)]


def moment(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


MOMENTS = [moment(each) for each in (0, -1, 1, 1_700_000_000_123_456, -62_135_596_800_000_000 + 5)]
VALUES: dict[Any, tuple[pa.DataType, list[Any], list[Any]]] = {
    "boolean": (pa.bool_(), [True, False], [True, False]),
    "int": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)], [0, -(2**31), 2**31 - 1]),
    "long": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)], [0, -(2**63), 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, 1.5, NAN, INF, -INF, TENTH], [0.0, -0.0, 1.5, TENTH]),
    "double": (
        pa.float64(),
        [0.0, -0.0, 1.5, NAN, INF, -INF, 5e-324, 1e308],
        [0.0, -0.0, 1.5, 5e-324, 1e308],
    ),
    "decimal(9, 2)": (
        pa.decimal128(9, 2),
        [Decimal("0.00"), Decimal("1.25"), Decimal("-9999999.99")],
        ["1.25", "-9999999.99"],
    ),
    "decimal(38, 10)": (
        pa.decimal128(38, 10),
        [Decimal("0"), Decimal("1234567890123456789012345678.0123456789")],
        ["1234567890123456789012345678.0123456789", "0E-10"],
    ),
    "date": (pa.date32(), [0, -1, 20_000, -719_162, 2_932_896], ["1970-01-01", "0001-01-01", "2024-10-04"]),
    "timestamp": (pa.timestamp("us"), MOMENTS, ["1970-01-01T00:00:00.000001", "0001-01-01T00:00:00.000005"]),
    "timestamptz": (
        pa.timestamp("us", tz="UTC"),
        [each.replace(tzinfo=UTC) for each in MOMENTS],
        ["1970-01-01T00:00:00.000001+00:00", "2023-11-14T22:13:20.123456+00:00"],
    ),
    "string": (pa.string(), TEXTS, TEXTS),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\x01", b"a"], ["00", "ff01"]),
    "fixed[2]": (pa.binary(2), [b"\x00\x01", b"\xff\x00", b"ab"], ["0001", "ff00"]),
    "uuid": (pa.uuid(), [uuid.UUID(each).bytes for each in UUIDS], UUIDS),
}
COMPARED = ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")
ACTIONS = (
    "mask-to-fixed-value",
    "replace-with-null",
    "sha-256-query-local",
    "mask-alphanum",
    "truncate-to-year",
    "truncate-to-month",
    "sha-256-global",
    "show-first-4",
    "show-last-4",
)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScanTask, Path]:
    """Three files with all types: chance values, one without NULLs, one with nothing else."""
    directory = tmp_path_factory.mktemp("everything")
    chance = random.Random(11)
    files = []
    for at, share in enumerate((0.8, 1.0, 0.0)):
        count = 40 if share else 2
        arrays = [pa.array(range(at * 100, at * 100 + count), pa.int64())]
        for type_, values, _ in VALUES.values():
            drawn = [chance.choice(values) if chance.random() < share else None for _ in range(count)]
            arrays.append(_array(drawn, type_))
        fields = [numbered("k", pa.int64(), 1)] + [
            numbered(f"c {each}", array.type, 2 + place)
            for place, (each, array) in enumerate(zip(VALUES, arrays[1:], strict=True))
        ]
        files.append(
            write(directory / f"{at}.parquet", pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
        )
    columns = [column(1, "k", "long")] + [column(2 + at, f"c {each}", each) for at, each in enumerate(VALUES)]
    return make_task(directory, files, columns), directory


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32()).cast(type_) if type_ == pa.date32() else pa.array(values, type_)


def filters_of(kind: str, id_: int, chance: random.Random) -> list[dict[str, Any]]:
    """Each operator that fits a type; comparisons with one of the constants."""
    constants = VALUES[kind][2]
    found = [reference("is-null", id_), reference("not-null", id_)]
    found += [reference(op, id_, chance.choice(constants)) for op in COMPARED]
    found += [reference("in", id_, constants), reference("not-in", id_, constants[:2])]
    if kind in ("float", "double"):
        found += [reference("is-nan", id_), reference("not-nan", id_)]
        found += [reference(op, id_, zero) for op in COMPARED for zero in (0.0, -0.0)]
    if kind == "string":
        found += [
            reference(op, id_, each) for op in ("starts-with", "not-starts-with") for each in ("a", "Zü")
        ]
    return found


def make_filters(base: ScanTask, most: int) -> dict[str, ScanTask]:
    """A task for each filter; of every type so many, chosen by chance."""
    chance = random.Random(5)
    tasks = {}
    for at, kind in enumerate(VALUES):
        found = filters_of(kind, 2 + at, chance)
        for each in chance.sample(found, min(most, len(found))):
            json = msgspec.json.encode(each)
            tasks[f"{kind} {json.decode()}"] = replace(base, columns=(1,), row_filter=json)
    return tasks


def test_operators_on_every_type(natives: Sparks, everything: tuple[ScanTask, Path]):
    base, directory = everything
    assert check_same(natives, make_filters(base, 3), directory) > 300


@pytest.mark.skipif("CYNOSURE_SOAK_GOVERNED" not in os.environ, reason="./dev soak governed")
@pytest.mark.timeout(600)
def test_every_operator_on_every_type(natives: Sparks, everything: tuple[ScanTask, Path]):
    base, directory = everything
    assert check_same(natives, make_filters(base, 1_000), directory) > 1000


def test_combined_filters_with_predicates_and_all_columns(natives: Sparks, everything: tuple[ScanTask, Path]):
    base, directory = everything
    chance = random.Random(6)
    leaves = [each for at, kind in enumerate(VALUES) for each in filters_of(kind, 2 + at, chance)]

    def combine(depth: int) -> dict[str, Any]:
        if depth == 0:
            return chance.choice(leaves)
        kind = chance.choice(["and", "or"])
        return {"type": kind, "left": combine(depth - 1), "right": combine(depth - 1)}

    tasks = {}
    for at in range(12):
        wanted = reference(chance.choice(COMPARED), 4, chance.choice([0, 1]))
        tasks[f"combination {at}"] = replace(
            base,
            row_filter=msgspec.json.encode(combine(3)),
            predicates=msgspec.json.encode(wanted) if at % 2 else b"true",
        )
    assert check_same(natives, tasks, directory) > 100


def test_every_action_on_every_type(natives: Sparks, everything: tuple[ScanTask, Path]):
    """Where an action does not fit, both refuse; everything else is masked at once."""
    base, directory = everything
    tasks, refused = {}, []
    for action in ACTIONS:
        for at, kind in enumerate(VALUES):
            task = replace(base, columns=(1, 2 + at), masks=(Mask(2 + at, action),))  # type: ignore[arg-type]
            fits = action in ("mask-to-fixed-value", "replace-with-null") or kind == "string"
            fits = (kind in ("date", "timestamp", "timestamptz")) if "truncate" in action else fits
            if fits:
                tasks[action, kind] = task
            elif kind in ("int", "uuid"):
                refused.append(task)
    for action in ACTIONS:
        ids = [2 + list(VALUES).index(kind) for chosen, kind in tasks if chosen == action]
        whole = replace(base, masks=tuple(Mask(each, action) for each in ids))  # type: ignore[arg-type]
        assert check_same(natives, {action: whole}, directory) == 82
    for task in refused[:3]:
        with pytest.raises(NotReadable, match="does not fit"):
            read_natively(natives, {"x": task}, directory)


def test_ten_thousand_values(natives: Sparks, everything: tuple[ScanTask, Path]):
    """As a mapping table gives them."""
    base, directory = everything
    texts = [f"it's {each}" for each in range(9_990)] + TEXTS[:10]
    at = 2 + list(VALUES).index("string")
    task = replace(base, row_filter=msgspec.json.encode(reference("in", at, texts)))
    assert check_same(natives, {"many": task}, directory) > 20


def test_what_is_not_understood_is_refused(natives: Sparks, everything: tuple[ScanTask, Path]):
    base, directory = everything
    bad = {
        "a field that is not there": {"row_filter": msgspec.json.encode(reference("eq", 99, 1))},
        "a transform": {
            "row_filter": b'{"type":"eq","term":{"type":"transform","transform":"year","term":"k"},"value":1}'
        },
        "another type's constant": {"row_filter": msgspec.json.encode(reference("eq", 3, "secret-constant"))},
        "a predicate on a masked column": {
            "predicates": msgspec.json.encode(reference("eq", 1, 5)),
            "masks": (Mask(1, "mask-to-fixed-value"),),
        },
        "a short salt": {"masks": (Mask(12, "sha-256-query-local"),), "salt": b"short"},
    }
    for what, changes in bad.items():
        with pytest.raises(NotReadable) as failed:
            read_natively(natives, {what: replace(base, **changes)}, directory)
        assert "secret-constant" not in str(failed.value), what
