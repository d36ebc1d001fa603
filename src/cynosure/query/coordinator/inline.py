"""Relations whose rows the coordinator has itself: runtime tables and metadata tables.

A maintainer must not break: they hold nothing that the user may not see by another way.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.query.arrow_types import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_MAP: Final = {
    "type": "map",
    "key-id": 1001,
    "key": "string",
    "value-id": 1002,
    "value": "string",
    "value-required": False,
}


class InlineTable(Struct, frozen=True):
    """A table of few rows."""

    shown: str
    schema: Schema
    rows: tuple[tuple[Any, ...], ...]

    def encode(self, columns: Sequence[int]) -> bytes:
        """The rows with these columns, as an Arrow IPC stream."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        fields = [(at, each) for at, each in enumerate(self.schema.fields)]
        chosen = [next(pair for pair in fields if pair[1].id == id_) for id_ in columns]
        schema = pa.schema([pa.field(each.name, to_arrow(each.type)) for _, each in chosen])
        batch = _batch(schema, [[row[at] for row in self.rows] for at, _ in chosen], len(self.rows))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())


def inline_schema(columns: Mapping[str, Any]) -> Schema:
    """A schema from names and Iceberg types, numbered from 1."""
    fields = [
        {"id": number, "name": name, "type": type_, "required": False}
        for number, (name, type_) in enumerate(columns.items(), 1)
    ]
    return decode_schema(msgspec.json.encode({"type": "struct", "schema-id": 0, "fields": fields}))


def _batch(schema: "pa.Schema", columns: list[list[Any]], rows: int) -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if not columns:
        # Without columns only the number of rows counts.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
