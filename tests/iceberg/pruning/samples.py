"""Random tables of a few rows, and random filters on them: ours and PyIceberg's."""

import math
import random
import struct
from decimal import Decimal
from typing import Any

import pyiceberg.expressions as theirs
from pyiceberg.expressions.literals import (
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimestampLiteral,
)

from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundMembership,
    BoundReference,
    BoundUnary,
)
from cynosure.iceberg.expressions.nodes import And, Not, Or
from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.manifests.content_file import ContentFile
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.pruning.transform import make_transform
from cynosure.iceberg.types import parse_type
from tests.iceberg.manifests.samples import make_schema

NAMES = ["long", "int", "string", "double", "date", "timestamp", "decimal(9, 2)"]
SCHEMA = make_schema(NAMES)
COLUMNS = {at: parse_type(name) for at, name in enumerate(NAMES, 1)}
LITERALS: list[type[Literal[Any]]] = [LongLiteral, LongLiteral, StringLiteral, DoubleLiteral, DateLiteral]
LITERALS += [TimestampLiteral, DecimalLiteral]
TRANSFORMS = {
    1: ["identity", "bucket[4]", "truncate[10]"],
    2: ["identity", "bucket[3]", "truncate[7]"],
    3: ["identity", "bucket[4]", "truncate[2]"],
    4: ["identity"],
    5: ["identity", "year", "month", "day", "bucket[5]"],
    6: ["year", "month", "day", "hour"],
    7: ["identity", "truncate[50]", "bucket[4]"],
}
DAY_US = 86_400_000_000
Row = dict[int, Any]


def random_value(id_: int, rng: random.Random, *, least: int = 0) -> Any:
    """Few different values, so that filters hit them. Dates are from 1970 on unless `least` is negative."""
    match id_:
        case 1 | 2:
            return rng.randrange(-30, 30)
        case 3:
            return "".join(rng.choice("abé") for _ in range(rng.randrange(4)))
        case 4:
            return rng.choice([-1.5, 0.5, 1.0, 2.0, math.inf])
        case 5:
            return rng.randrange(400 * least, 800)
        case 6:
            return rng.randrange(400 * least, 800) * DAY_US + rng.randrange(DAY_US)
        case _:
            return Decimal(rng.randrange(-300, 300)).scaleb(-2)


def random_spec(rng: random.Random) -> PartitionSpec:
    sources = rng.choices(sorted(TRANSFORMS), k=rng.randrange(4))
    fields = [
        PartitionField(f"p{at}", rng.choice(TRANSFORMS[id_]), source_id=id_, field_id=1000 + at)
        for at, id_ in enumerate(sources)
    ]
    return PartitionSpec(tuple(fields), spec_id=3)


def random_file(
    spec: PartitionSpec, rng: random.Random, number: int, *, least: int = 0, nan: bool
) -> tuple[Any, Any]:
    """A file with its rows: all of one partition, with metrics that are true but may be missing or cut."""
    first = {id_: _maybe(id_, rng, least, nan=nan) for id_ in COLUMNS}
    rows = [first]
    partition = tuple(transformed(field, first) for field in spec.fields)
    for _ in range(rng.randrange(6)):
        row = {id_: _maybe(id_, rng, least, nan=nan) for id_ in COLUMNS}
        for field in spec.fields:
            row[field.sources[0]] = first[field.sources[0]]
        rows.append(row)
    if rng.random() < 0.05:
        rows = []
    return make_file(rows, partition, rng, number), rows


def _maybe(id_: int, rng: random.Random, least: int, *, nan: bool) -> Any:
    if rng.random() < 0.15:
        return None
    return math.nan if nan and id_ == 4 and rng.random() < 0.3 else random_value(id_, rng, least=least)


def transformed(field: PartitionField, row: Row) -> Any:
    value = row[field.sources[0]]
    apply = make_transform(field.transform, COLUMNS[field.sources[0]])
    assert apply is not None
    return None if value is None else apply(value)


def make_file(rows: list[Row], partition: tuple[Any, ...], rng: random.Random, number: int) -> ContentFile:
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for id_, type_ in COLUMNS.items():
        found = [row[id_] for row in rows]
        there = [one for one in found if one is not None and one == one]  # noqa: PLR0124
        if rng.random() < 0.9:
            values[id_] = len(found)
            nulls[id_] = found.count(None)
            if id_ == 4:
                nans[id_] = len(found) - nulls[id_] - len(there)
        if there and rng.random() < 0.9:
            lower[id_], upper[id_] = write_bound(type_, min(there)), write_bound(type_, max(there))
            if id_ == 3 and rng.random() < 0.5:
                lower[id_] = min(there)[:1].encode()
                upper[id_] = (max(there)[:1] + "\U0010ffff").encode()
            if id_ == 1 and rng.random() < 0.3:
                # Written before the column became a long.
                lower[id_], upper[id_] = (struct.pack("<i", one(there)) for one in (min, max))
    return ContentFile(
        path=f"s3://b/{number}.parquet",
        format="parquet",
        spec_id=3,
        partition=partition,
        record_count=len(rows),
        file_size_bytes=1,
        value_counts=values or None,
        null_value_counts=nulls or None,
        nan_value_counts=nans or None,
        lower_bounds=lower or None,
        upper_bounds=upper or None,
    )


# Filters, in three forms at once: ours, PyIceberg's, and a function on a row.

_COMPARE: dict[str, Any] = {
    "lt": (theirs.LessThan, lambda a, b: a is not None and a < b),
    "lt-eq": (theirs.LessThanOrEqual, lambda a, b: a is not None and a <= b),
    "gt": (theirs.GreaterThan, lambda a, b: a is not None and a > b),
    "gt-eq": (theirs.GreaterThanOrEqual, lambda a, b: a is not None and a >= b),
    "eq": (theirs.EqualTo, lambda a, b: a is not None and a == b),
    "not-eq": (theirs.NotEqualTo, lambda a, b: a is None or a != b),
    "starts-with": (theirs.StartsWith, lambda a, b: a is not None and a.startswith(b)),
    "not-starts-with": (theirs.NotStartsWith, lambda a, b: a is None or not a.startswith(b)),
}
_UNARY: dict[str, Any] = {
    "is-null": (theirs.IsNull, lambda a: a is None),
    "not-null": (theirs.NotNull, lambda a: a is not None),
    "is-nan": (theirs.IsNaN, lambda a: a is not None and math.isnan(a)),
    "not-nan": (theirs.NotNaN, lambda a: a is None or not math.isnan(a)),
}
Filter = tuple[Any, Any, Any]


def random_filter(
    rng: random.Random, depth: int = 3, *, has_not: bool, has_sets: bool = True, least: int = 0
) -> Filter:
    kind = rng.random()
    if depth and kind < 0.6:
        left = random_filter(rng, depth - 1, has_not=has_not, has_sets=has_sets, least=least)
        right = random_filter(rng, depth - 1, has_not=has_not, has_sets=has_sets, least=least)
        if kind < 0.3:
            return (
                And(left[0], right[0]),
                theirs.And(left[1], right[1]),
                lambda row: left[2](row) and right[2](row),
            )
        return Or(left[0], right[0]), theirs.Or(left[1], right[1]), lambda row: left[2](row) or right[2](row)
    if has_not and kind < 0.75:
        child = random_filter(rng, 0, has_not=has_not, has_sets=has_sets, least=least)
        return Not(child[0]), theirs.Not(child[1]), lambda row: not child[2](row)
    return _random_leaf(rng, least, has_not=has_not, has_sets=has_sets)


def _random_leaf(rng: random.Random, least: int, *, has_not: bool, has_sets: bool) -> Filter:
    id_ = rng.choice(sorted(COLUMNS))
    term = BoundReference(id_, f"c{id_}", COLUMNS[id_], is_required=False)
    name = f"c{id_}"
    kind = rng.random()
    if kind < 0.2:
        op: Any = rng.choice(sorted(_UNARY) if id_ == 4 else ["is-null", "not-null"])
        class_, test = _UNARY[op]
        return BoundUnary(op, term), class_(name), lambda row: test(row[id_])
    if has_sets and kind < 0.35:
        values = tuple({random_value(id_, rng, least=least): None for _ in range(rng.randrange(2, 5))})
        member: Any = rng.choice(["in", "not-in"])
        their_values = {LITERALS[id_ - 1](value) for value in values}
        class_ = theirs.In if member == "in" else theirs.NotIn
        return (
            BoundMembership(member, term, values),
            class_(name, their_values),
            lambda row: (row[id_] in values) == (member == "in"),
        )
    ops = sorted(_COMPARE) if id_ == 3 else [one for one in sorted(_COMPARE) if "starts" not in one]
    if not has_not and "not-starts-with" in ops:
        ops.remove("not-starts-with")
    op = rng.choice(ops)
    value = random_value(id_, rng, least=least)
    if "starts" in op:
        # PyIceberg does not see that everything starts with nothing.
        value = value or "a"
    class_, test = _COMPARE[op]
    return (
        BoundComparison(op, term, value),
        class_(name, LITERALS[id_ - 1](value)),
        lambda row: test(row[id_], value),
    )
