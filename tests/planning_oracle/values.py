"""Columns of random tables: their types, their values, and the metrics that a writer would store of them.

A maintainer must not break: few different values, so that filters hit some rows and miss others; and every
value that a `float` can hold exactly, because PyIceberg 0.12 reads partition values through one.
"""

import math
import random
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from pyiceberg.expressions.literals import (
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FixedLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
    TimestampLiteral,
    UUIDLiteral,
)
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType

from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.types import Type, is_floating, parse_type

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000

NAMES = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz"),
    *("string", "uuid", "binary", "fixed[4]", "decimal(9, 2)"),
)
WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(18, 2)"}

_TRANSFORMS = {
    "boolean": ["identity"],
    "float": ["identity"],
    "double": ["identity"],
    "int": ["identity", "bucket[4]", "truncate[10]"],
    "long": ["identity", "bucket[4]", "truncate[10]"],
    "date": ["identity", "year", "month", "day", "bucket[3]"],
    "time": ["identity", "bucket[3]"],
    "timestamp": ["year", "month", "day", "hour", "bucket[3]"],
    "timestamptz": ["year", "month", "day", "hour", "identity"],
    "string": ["identity", "bucket[4]", "truncate[2]"],
    "uuid": ["identity", "bucket[2]"],
    "binary": ["identity", "bucket[3]", "truncate[1]"],
    "fixed[4]": ["identity", "bucket[3]"],
    "decimal(9, 2)": ["identity", "bucket[4]", "truncate[50]"],
    "decimal(18, 2)": ["identity", "bucket[4]", "truncate[50]"],
}
_LITERALS: dict[str, type[Literal[Any]]] = {
    "boolean": BooleanLiteral,
    "int": LongLiteral,
    "long": LongLiteral,
    "float": FloatLiteral,
    "double": DoubleLiteral,
    "date": DateLiteral,
    "time": TimeLiteral,
    "timestamp": TimestampLiteral,
    "timestamptz": TimestampLiteral,
    "string": StringLiteral,
    "binary": BinaryLiteral,
    "fixed[4]": FixedLiteral,
    "decimal(9, 2)": DecimalLiteral,
    "decimal(18, 2)": DecimalLiteral,
}


def transforms_of(name: str) -> list[str]:
    return _TRANSFORMS[name]


@cache
def their_transform(transform: str, name: str) -> Callable[[Any], Any]:
    """PyIceberg's: what writers of a table have put into its partitions does not depend on our own."""
    if transform == "void":
        return lambda _: None
    apply = parse_transform(transform).transform(IcebergType.handle_primitive_type(name, None))
    return lambda value: None if value is None else apply(value)


def their_literal(name: str, value: Any) -> Literal[Any]:
    return UUIDLiteral(value.bytes) if name == "uuid" else _LITERALS[name](value)


def random_value(name: str, rng: random.Random, *, is_plain: bool) -> Any:
    """A value that a filter may also name. Plain: nothing that readers of Iceberg are known to differ on."""
    if name.startswith(("date", "timestamp")):
        day = rng.randrange(0 if is_plain else -400, 800)
        return day if name == "date" else day * DAY_US + rng.randrange(DAY_US)
    if name.startswith("decimal"):
        return Decimal(rng.randrange(-300, 300)).scaleb(-2)
    if name in ("float", "double"):
        return rng.choice([-1.5, 0.5, 1.0, 2.25] if is_plain else [-1.5, -0.0, 0.0, 0.5, 1.0, 2.25])
    return _VALUES[name](rng)


_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "boolean": lambda rng: rng.random() < 0.5,
    "int": lambda rng: rng.randrange(-25, 25),
    "long": lambda rng: rng.randrange(-25, 25),
    "time": lambda rng: rng.randrange(24) * HOUR_US,
    "string": lambda rng: "".join(rng.choice("aabé\U0001f600") for _ in range(rng.randrange(6))),
    # With the highest bit set or not: signed and unsigned orders differ.
    "uuid": lambda rng: UUID(int=rng.choice([1, 2, 3, 2**127 + 5, 2**128 - 1])),
    "binary": lambda rng: bytes(rng.choice([0, 65, 200, 255]) for _ in range(rng.randrange(4))),
    "fixed[4]": lambda rng: bytes(rng.choice([0, 1, 255]) for _ in range(4)),
}


def next_to(name: str, value: Any, rng: random.Random) -> Any:
    """The value itself or one of its neighbours: where a bound is off by one, it shows."""
    if name == "string":
        return value[: rng.randrange(6)] + rng.choice(["", "a", "b"])
    step = Decimal("0.01") if name.startswith("decimal") else 1
    if name in ("int", "long", "date", "timestamp", "timestamptz") or name.startswith("decimal"):
        return value + rng.choice([-step, 0 * step, 0 * step, step])
    return value


def stored_value(name: str, rng: random.Random, *, is_plain: bool) -> Any:
    """A value of a row: also null, and what no filter can name."""
    if rng.random() < 0.15:
        return None
    if name in ("float", "double") and rng.random() < 0.2:
        return rng.choice([math.inf, -math.inf] if is_plain else [math.inf, -math.inf, math.nan, math.nan])
    return random_value(name, rng, is_plain=is_plain)


class Metrics:
    """What a writer stores of one file's columns: true, but some of it missing and some of it cut."""

    def __init__(self) -> None:
        self.value_counts: dict[int, int] = {}
        self.null_value_counts: dict[int, int] = {}
        self.nan_value_counts: dict[int, int] = {}
        self.lower_bounds: dict[int, bytes] = {}
        self.upper_bounds: dict[int, bytes] = {}

    def add(self, id_: int, type_: Type, values: list[Any], rng: random.Random, *, is_complete: bool) -> None:
        present = [value for value in values if value is not None]
        numbers = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
        if is_complete or rng.random() < 0.9:
            self.value_counts[id_] = len(values)
            self.null_value_counts[id_] = len(values) - len(present)
            # Who has NaN says so: planners of Iceberg take an unknown count for none when bounds are known.
            if is_floating(type_) and (is_complete or rng.random() < 0.9 or len(present) > len(numbers)):
                self.nan_value_counts[id_] = len(present) - len(numbers)
        has_said = id_ in self.nan_value_counts or len(present) == len(numbers)
        if numbers and has_said and rng.random() < 0.9:
            low, high = min(numbers, key=_in_order), max(numbers, key=_in_order)
            lower, upper = write_bound(type_, low), write_bound(type_, high)
            if rng.random() < 0.5:
                lower, upper = _cut(low, lower, high, upper)
            if rng.random() < 0.95:
                self.lower_bounds[id_] = lower
            if upper is not None and rng.random() < 0.95:
                self.upper_bounds[id_] = upper

    def as_fields(self) -> dict[str, Any]:
        return {name: found or None for name, found in vars(self).items()}


def _in_order(value: Any) -> Any:
    """Bounds hold -0.0 below 0.0, as the specification wants it."""
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


def _cut(low: Any, lower: bytes, high: Any, upper: bytes) -> tuple[bytes, bytes | None]:
    """Bounds of long values are cut: the lower one short, the upper one short and then the next higher."""
    if isinstance(low, str):
        head = high[:1]
        following = chr(ord(head) + 1) if head else None
        longer = len(high) > 1 and following is not None
        return low[:1].encode(), following.encode() if longer and following else upper
    if isinstance(low, bytes) and len(high) > 1:
        # The first byte may have no next one: then there is no upper bound at all.
        return low[:1], bytes([high[0] + 1]) if high[0] < 255 else None
    return lower, upper


def type_of(name: str) -> Type:
    return parse_type(name)
