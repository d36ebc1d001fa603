"""Files of this machine as Arrow data: Parquet, Arrow, CSV, JSON lines.

A maintainer must not break: files are read a part at a time, and the same file gives the same batches again.
In text, what has no type of its own is read as the table's columns have it, and only an empty cell is null.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from cynosure.common.errors import BadInput

_BATCH_ROWS: Final = 65_536
_BLOCK_BYTES: Final = 4 * 2**20


def read_local(path: Path) -> Callable[[pa.Schema], pa.RecordBatchReader]:
    """How to read a file, once the columns of the table are known."""
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadInput(
            "Files of this kind are not read",
            field="FILE",
            fix=f"Give a file that ends in {', '.join(_READERS)}.",
            file=str(path),
        )
    if not path.is_file():
        raise BadInput("There is no such file", field="FILE", fix="Check the path.", file=str(path))

    def open_for(schema: pa.Schema) -> pa.RecordBatchReader:
        try:
            return read(path, schema)
        except (OSError, pa.ArrowException) as error:
            raise BadInput(
                "The file cannot be read",
                field="FILE",
                fix="Correct it.",
                file=str(path),
                reason=str(error)[:500],
            ) from error

    return open_for


def _read_parquet(path: Path, schema: pa.Schema) -> pa.RecordBatchReader:
    file = pq.ParquetFile(path)
    return pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(_BATCH_ROWS))


def _read_arrow(path: Path, schema: pa.Schema) -> pa.RecordBatchReader:
    source = pa.memory_map(str(path))
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)
    batches = (file.get_batch(at) for at in range(file.num_record_batches))
    return pa.RecordBatchReader.from_batches(file.schema, batches)


def _read_csv(path: Path, schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.csv.open_csv(
        path,
        # One thread: batches come in their order, and the same ones again.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        convert_options=pa.csv.ConvertOptions(
            column_types={field.name: field.type for field in schema if _has_text(field.type)},
            # "NA" is a name, too.
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _read_json(path: Path, schema: pa.Schema) -> pa.RecordBatchReader:
    # Arrow's reader takes dates and times for numbers; its conversion from text reads them as ISO 8601.
    later = {field.name: field.type for field in schema if _is_day_or_time(field.type)}
    known = [
        pa.field(field.name, pa.string() if field.name in later else field.type)
        for field in schema
        if _has_text(field.type)
    ]
    reader = pa.json.open_json(
        path,
        read_options=pa.json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        parse_options=pa.json.ParseOptions(
            explicit_schema=pa.schema(known), unexpected_field_behavior="infer"
        ),
    )
    target = pa.schema([(field.name, later.get(field.name, field.type)) for field in reader.schema])
    return pa.RecordBatchReader.from_batches(target, (batch.cast(target) for batch in reader))


def _is_day_or_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_date(type_) or pa.types.is_time(type_))


def _has_text(type_: pa.DataType) -> bool:
    """Whether Arrow reads values of this type from text."""
    return not isinstance(type_, pa.BaseExtensionType)


_READERS: Final[dict[str, Callable[[Path, pa.Schema], Any]]] = {
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".csv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_json,
}
