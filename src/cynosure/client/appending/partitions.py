"""Batches divided by the partition that their rows belong to.

Values are transformed once per distinct value and batch, by the same code that the server prunes with
(`iceberg.pruning.transform`). What has many distinct values (timestamps, numbers that are truncated) is
brought to few with Arrow first.

A maintainer must not break: rows of a partition keep their order, and no row is in two partitions or none.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cynosure.client.appending.arrow_types import to_plain_values
from cynosure.common.errors import BadInput
from cynosure.iceberg import types
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.pruning.transform import make_transform
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.transforms import VOID
from cynosure.iceberg.types import Type

Partition = tuple[Any, ...]
"""Values in the order of the spec's fields, as `iceberg.single_value` holds them."""

_DAY_S: Final = 86_400
_PER_S: Final = {
    types.TIMESTAMP: 1_000_000,
    types.TIMESTAMPTZ: 1_000_000,
    types.TIMESTAMP_NS: 1_000_000_000,
    types.TIMESTAMPTZ_NS: 1_000_000_000,
}


def identify(value: Any) -> Any:
    """What tells partition values apart: NaN is not itself, and both zeros are one to Python."""
    return repr(value) if isinstance(value, float) else value


class Partitioner:
    """Divides batches of a table."""

    def __init__(self, spec: PartitionSpec, schema: Schema) -> None:
        """`BadInput` for a transform that this client does not know."""
        self._fields = [_Field(field, schema, at) for at, field in enumerate(spec.fields)]

    def divide(self, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """The rows of each partition, in the order of the batch."""
        if not batch.num_rows:
            return
        coded = [field.encode(batch) for field in self._fields]
        if all(len(values) == 1 for _, values in coded):
            yield tuple(values[0] for _, values in coded), batch
            return
        codes = pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows)
        for indices, values in coded:
            # Dense again after each field, or many fields would overflow.
            combined = pc.add(pc.multiply(codes, len(values)), indices)
            codes = combined.dictionary_encode().indices.cast(pa.int64())
        # Stable, so rows keep their order.
        order = pc.sort_indices(codes)
        ends = pc.run_end_encode(codes.take(order)).run_ends.to_pylist()
        start = 0
        for end in ends:
            rows = order.slice(start, end - start)
            first = rows[0].as_py()
            yield tuple(values[indices[first].as_py()] for indices, values in coded), batch.take(rows)
            start = end


class _Field:
    """One field of the spec."""

    def __init__(self, field: PartitionField, schema: Schema, at: int) -> None:
        self._is_void = field.transform == VOID
        if self._is_void:
            return
        place = schema.places[field.sources[0]]
        type_ = place.field.type
        apply = make_transform(field.transform, type_)
        if apply is None or len(field.sources) != 1:
            raise BadInput(
                "The table is partitioned by a transform that this client does not know",
                field=f"partition-spec.fields[{at}].transform",
                fix="Append with an engine that knows it.",
                transform=field.transform,
            )
        self._path = [each.name for each in (*place.around, place.field)]
        self._type: Type = type_
        self._name, _, width = field.transform.removesuffix("]").partition("[")
        self._width = int(width or 0)
        self._apply = apply

    def encode(self, batch: pa.RecordBatch) -> tuple[pa.Array, list[Any]]:
        """For each row the place of its value in a list of values."""
        if self._is_void:
            return pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows), [None]
        array = batch.column(self._path[0])
        for name in self._path[1:]:
            array = pc.struct_field(array, name)
        coded = self._coarsen(array).dictionary_encode(null_encoding="encode")
        values = to_plain_values(coded.dictionary, self._type)
        places: dict[Any, int] = {}
        made: list[Any] = []
        found: list[int] = []
        for value in values:
            result = None if value is None else self._apply(value)
            place = places.setdefault(identify(result), len(made))
            if place == len(made):
                made.append(result)
            found.append(place)
        return pa.array(found, pa.int64()).take(coded.indices), made

    def _coarsen(self, array: pa.Array) -> pa.Array:
        """Fewer distinct values, with the same results."""
        if isinstance(array, pa.ExtensionArray):
            # Arrow encodes no dictionary of an extension type.
            return array.storage
        if self._type in _PER_S and self._name in ("year", "month", "day", "hour"):
            seconds = 3600 if self._name == "hour" else _DAY_S
            return _floor(array.cast(pa.int64()), seconds * _PER_S[self._type])
        if self._name == "truncate" and self._type == types.LONG:
            return _floor(array, self._width)
        if self._name == "truncate" and self._type == types.STRING:
            return pc.utf8_slice_codeunits(array, 0, self._width)
        return array


def _floor(array: pa.Array, step: int) -> pa.Array:
    """For each number one of the same step: the first of it, or of negative ones the last.

    Arrow's division goes towards zero, and the first of the lowest step may be out of range.
    """
    multiple = pc.multiply(pc.divide(array, step), step)
    return pc.if_else(pc.greater(multiple, array), pc.subtract(multiple, 1), multiple)
