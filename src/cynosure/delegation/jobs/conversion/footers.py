"""What Parquet files say about themselves: read on executors, a footer each.

A maintainer must not break: this runs in Spark's Python workers. It raises our own errors as values, because
what a worker raises arrives as text.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from cynosure.client.appending.arrow_types import list_leaves
from cynosure.client.appending.metrics import read_metrics
from cynosure.client.appending.options import Kept, MetricsMode, read_modes
from cynosure.delegation.jobs.conversion.found_files import FoundFile, to_value
from cynosure.delegation.jobs.conversion.reach_files import open_place
from cynosure.delegation.jobs.port import JobFailed
from cynosure.iceberg.manifests.content_file import ContentFile
from cynosure.iceberg.manifests.content_file_json import JsonTypes, file_to_json
from cynosure.iceberg.partitioning import PartitionSpec, partition_types, read_spec
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.types import NestedField, is_floating

_INT96: Final = "INT96"
_OLD_TIME: Final = pa.timestamp("us", "UTC")
_COUNTS: Final = MetricsMode(Kept.COUNTS)


class Refused(Struct, frozen=True):
    """A file that cannot be part of a table."""

    path: str
    reason: str


class Shape(Struct, frozen=True):
    """Columns that some files have: Arrow's own bytes, and one of the files."""

    columns: bytes
    example: str


class TableForm(Struct, frozen=True):
    """What an executor must know of the table."""

    schema_json: bytes
    spec_json: bytes
    properties: dict[str, str]


def read_shapes(
    files: Iterable[FoundFile], place: str, properties: Mapping[str, str]
) -> Iterator[Shape | Refused]:
    """The different columns of these files."""
    seen: set[bytes] = set()
    for file, footer in _open_all(files, place, properties):
        if isinstance(footer, Refused):
            yield footer
            continue
        columns = _plain_columns(footer, file.path)
        if isinstance(columns, Refused):
            yield columns
            continue
        encoded = columns.serialize().to_pybytes()
        if encoded not in seen:
            seen.add(encoded)
            yield Shape(encoded, file.path)


def measure(
    files: Iterable[FoundFile], place: str, properties: Mapping[str, str], form: TableForm
) -> Iterator[bytes | Refused]:
    """These files as the catalog takes them (`appendFiles`), in JSON."""
    schema, spec = decode_schema(form.schema_json), read_spec(form.spec_json).value
    kinds = JsonTypes({spec.spec_id: partition_types(spec, schema)}, schema.find_type)
    modes = read_modes(form.properties, schema)
    for file, footer in _open_all(files, place, properties):
        if isinstance(footer, Refused):
            yield footer
            continue
        try:
            content = _describe(file, footer.metadata, footer.schema_arrow, place, schema, spec, modes)
        except JobFailed as error:
            yield Refused(file.path, str(error))
            continue
        yield msgspec.json.encode(file_to_json(content, kinds))


def _open_all(
    files: Iterable[FoundFile], place: str, properties: Mapping[str, str]
) -> Iterator[tuple[FoundFile, pq.ParquetFile | Refused]]:
    system, root = open_place(place, properties)
    for file in files:
        try:
            with system.open_input_file(f"{root}/{file.path}") as source:
                yield file, pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            yield file, Refused(file.path, str(error)[:300])


def _plain_columns(footer: pq.ParquetFile, path: str) -> pa.Schema | Refused:
    """The columns without what does not matter: field metadata, and whether they may be null."""
    old = {
        column.path
        for at in range(footer.metadata.num_columns)
        if (column := footer.metadata.schema.column(at)).physical_type == _INT96
    }
    if any("." in each for each in old):
        return Refused(path, "A timestamp in an old form (INT96) lies within another column")
    fields = [
        pa.field(each.name, _OLD_TIME if each.name in old else each.type) for each in footer.schema_arrow
    ]
    return pa.schema(fields)


def _describe(
    file: FoundFile,
    metadata: pq.FileMetaData,
    columns: pa.Schema,
    place: str,
    schema: Schema,
    spec: PartitionSpec,
    modes: Mapping[int, MetricsMode],
) -> ContentFile:
    leaves = _list_leaves(columns, schema)
    if len(leaves) != metadata.num_columns:
        raise JobFailed("A file's columns are not those of the table", code="CONVERSION_REFUSED", status=409)
    own = {
        field.id: _choose_mode(field, metadata.schema.column(at), modes[field.id])
        for at, field in enumerate(leaves)
    }
    found = read_metrics(metadata, leaves, own, {})
    values = dict(file.partition)
    partition: list[Any] = []
    for each in spec.fields:
        source = schema.places[each.sources[0]].field
        partition.append(to_value(values[source.name], source.type, file.path))
    return ContentFile(
        path=f"{place.rstrip('/')}/{file.path}",
        format="parquet",
        spec_id=spec.spec_id,
        partition=tuple(partition),
        record_count=found.record_count,
        file_size_bytes=file.size_bytes,
        column_sizes=found.column_sizes,
        value_counts=found.value_counts,
        null_value_counts=found.null_value_counts,
        lower_bounds=found.lower_bounds,
        upper_bounds=found.upper_bounds,
        split_offsets=found.split_offsets,
    )


def _list_leaves(columns: pa.Schema, schema: Schema) -> list[NestedField]:
    """The fields of the file's columns, in the file's order."""
    by_column: dict[str, list[NestedField]] = {}
    for _, field, _ in list_leaves(schema):
        place = schema.places[field.id]
        top = place.around[0] if place.around else place.field
        by_column.setdefault(top.name, []).append(field)
    return [leaf for each in columns for leaf in by_column.get(each.name, [])]


def _choose_mode(field: NestedField, column: Any, mode: MetricsMode) -> MetricsMode:
    """No bounds where a file may keep other numbers than Iceberg does, or leave NaN out or not."""
    if mode.kept is not Kept.BOUNDS:
        return mode
    logical = column.logical_type
    is_other_unit = logical.type == "TIMESTAMP" and "microseconds" not in str(logical)
    return _COUNTS if is_floating(field.type) or column.physical_type == _INT96 or is_other_unit else mode
