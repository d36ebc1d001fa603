"""A filter on the packed metrics of a manifest, all files at once.

The answer of each question is one bit for each file, in one large number: `and` and `or` of many questions
then cost next to nothing.

A maintainer must not break: a metric that is missing rules out nothing.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from cynosure.iceberg.expressions.bound import BoundTransform
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import Always, And, Or
from cynosure.iceberg.manifests.bounds import read_bound, write_bound
from cynosure.iceberg.manifests.columns import Column, Constant, PackedBytes
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.pruning.normal import Leaf, Normal, Unknown
from cynosure.iceberg.pruning.values import make_range_test
from cynosure.iceberg.types import BINARY, STRING, UUID, FixedType, Type, is_floating

_WIDE: Final = {
    "int": "i",
    "date": "i",
    "long": "q",
    "time": "q",
    "timestamp": "q",
    "timestamptz": "q",
    "timestamp_ns": "q",
    "timestamptz_ns": "q",
    "float": "f",
    "double": "d",
}
"""Types whose stored bounds are numbers of this machine, if it is little-endian."""


def can_match(filter_: Normal, manifest: Manifest) -> bytes:
    """For each file 1 if a row of it can match, else 0."""
    count = len(manifest)
    bits = fold(filter_, partial(_expand, manifest=manifest))
    # A file without rows has no row that matches, whatever its metrics say.
    bits &= _number(record != 0 for record in manifest.record_counts)
    return bits.to_bytes(count, "little")


def _expand(node: Any, *, manifest: Manifest) -> tuple[Sequence[Any], Join[int]]:
    match node:
        case And(left, right):
            return (left, right), lambda parts: parts[0] & parts[1]
        case Or(left, right):
            return (left, right), lambda parts: parts[0] | parts[1]
        case Always(answer):
            return (), lambda _: _all(manifest) if answer else 0
        case Unknown():
            return (), lambda _: _all(manifest)
    return (), lambda _: _test(node, manifest)


def _all(manifest: Manifest) -> int:
    return int.from_bytes(b"\x01" * len(manifest), "little")


def _number(answers: Iterable[bool]) -> int:
    return int.from_bytes(bytes(answers), "little")


def _test(leaf: Leaf, manifest: Manifest) -> int:
    if isinstance(leaf.term, BoundTransform):
        return _all(manifest)
    id_ = leaf.source.id
    nulls, values = manifest.null_value_counts.get(id_), manifest.value_counts.get(id_)
    nans = manifest.nan_value_counts.get(id_)
    match leaf.op:
        case "is-null":
            return _unless(manifest, (nulls,), lambda null: null == 0)
        case "not-null":
            return _unless(manifest, (nulls, values), lambda null, value: null is not None and null == value)
        case "is-nan":
            some = _unless(manifest, (nans,), lambda nan: nan == 0)
            return some & _unless(manifest, (nulls, values), _are_all)
        case "not-nan":
            return _unless(manifest, (nans, values), _are_all)
        case "not-eq" | "not-in":
            return _all(manifest)
    if leaf.op == "not-starts-with":
        return _test_range(leaf, manifest) | _unless(manifest, (nulls,), lambda null: null == 0)
    bits = _test_range(leaf, manifest) & _unless(manifest, (nulls, values), _are_all)
    if is_floating(leaf.source.type):
        if leaf.op in ("gt", "gt-eq"):
            # Bounds are of numbers only, and to some engines NaN is larger than all of them. Not all writers
            # count them.
            bits |= _unless(manifest, (nans,), lambda nan: nan == 0)
        else:
            bits &= _unless(manifest, (nans, values), _are_all)
    return bits


def _are_all(some: int | None, values: int | None) -> bool:
    return some is not None and some == values


def _unless(
    manifest: Manifest, columns: tuple[Column[int] | None, ...], rules_out: Callable[..., bool]
) -> int:
    """All files but those of which these metrics say that they cannot match."""
    if None in columns:
        return _all(manifest)
    if all(isinstance(column, Constant) for column in columns):
        # One answer for all files.
        is_out = rules_out(*(column.value for column in columns))  # type: ignore[union-attr]
        return 0 if is_out else _all(manifest)
    return _number(not rules_out(*row) for row in zip(*columns, strict=True))


def _test_range(leaf: Leaf, manifest: Manifest) -> int:
    id_, type_ = leaf.source.id, leaf.source.type
    lower, upper = manifest.lower_bounds.get(id_), manifest.upper_bounds.get(id_)
    values = leaf.values
    if type_ in (STRING, BINARY, UUID) or isinstance(type_, FixedType):
        # The order of the bytes is the order of the values.
        values = tuple(write_bound(type_, value) for value in values)
        lows, highs = _or_nothing(lower, manifest), _or_nothing(upper, manifest)
    else:
        lows, highs = _numbers(lower, type_, manifest), _numbers(upper, type_, manifest)
    test = make_range_test(leaf.op, values)
    return _number(map(test, lows, highs))


def _or_nothing(column: Column[bytes] | None, manifest: Manifest) -> Iterable[bytes | None]:
    return Constant[bytes](None, len(manifest)) if column is None else column


def _numbers(column: Column[bytes] | None, type_: Type, manifest: Manifest) -> Iterable[Any]:
    code = _WIDE.get(str(type_))
    if isinstance(column, PackedBytes) and code is not None and sys.byteorder == "little":
        packed = column.cast(code)
        if packed is not None:
            return packed
    if isinstance(column, Constant) and column.value is not None:
        return Constant(read_bound(type_, column.value), len(manifest))
    return (None if data is None else read_bound(type_, data) for data in _or_nothing(column, manifest))
