"""Position deletes in a Parquet file, written again with the paths that data files have now.

A maintainer must not break: the same file gives the same bytes again, sorted by path and position, and every
other column, the file's own properties and field ids stay.
"""

from typing import IO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.repath import PATH_COLUMN, POSITION_COLUMN, Remeasured, Rename

_FIELD_ID: Final = b"PARQUET:field_id"
_ARROW: Final = b"ARROW:schema"
_PLAIN: Final = "NONE"


def rewrite_position_deletes(source: IO[bytes], into: IO[bytes], rename: Rename, *, path: str) -> Remeasured:
    """Write the deletes of a file into another one. It is in memory meanwhile."""
    try:
        file = pq.ParquetFile(source)
        table = file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path) from error
    path_name = _find_column(table.schema, PATH_COLUMN, "file_path")
    position_name = _find_column(table.schema, POSITION_COLUMN, "pos")
    if path_name is None or position_name is None:
        raise _damaged(path)
    at_path, at_position = map(table.schema.get_field_index, (path_name, position_name))
    renamed = _rename(table.column(at_path), rename)
    table = table.set_column(at_path, table.schema.field(at_path), renamed)
    order = pc.sort_indices(
        pa.table({"path": renamed, "at": table.column(at_position)}),
        sort_keys=[("path", "ascending"), ("at", "ascending")],
    )
    table = table.take(order)
    kind = file.metadata
    codec = kind.row_group(0).column(at_path).compression if kind.num_row_groups else _PLAIN
    codec = _PLAIN if codec == "UNCOMPRESSED" else codec
    with pq.ParquetWriter(into, table.schema, compression=codec, store_schema=False) as writer:
        writer.write_table(table)
        # Arrow's own is of the file that was read.
        told = {name: value for name, value in (kind.metadata or {}).items() if name != _ARROW}
        writer.add_key_value_metadata(told)
    ids = {path_name: PATH_COLUMN, position_name: POSITION_COLUMN}
    return _measure(into, table, ids, at_path)


def _find_column(schema: pa.Schema, field_id: int, name: str) -> str | None:
    for field in schema:
        if (field.metadata or {}).get(_FIELD_ID) == str(field_id).encode():
            return str(field.name)
    # Old writers left ids out, and the names are fixed.
    return name if name in schema.names else None


def _rename(paths: pa.ChunkedArray, rename: Rename) -> pa.ChunkedArray:
    coded = paths.combine_chunks()
    coded = coded if isinstance(coded, pa.DictionaryArray) else pc.dictionary_encode(coded)
    # Few data files, many rows: each path is renamed once.
    renamed = pa.array([rename(each) for each in coded.dictionary.to_pylist()], coded.dictionary.type)
    return pa.chunked_array([renamed.take(coded.indices)]).cast(paths.type)


def _measure(file: IO[bytes], table: pa.Table, ids: dict[str, int], at_path: int) -> Remeasured:
    file.flush()
    size_bytes = file.tell()
    file.seek(0)
    found = pq.ParquetFile(file).metadata
    sizes: dict[int, int] = {}
    offsets: list[int] = []
    for group in (found.row_group(at) for at in range(found.num_row_groups)):
        columns = [group.column(at) for at in range(group.num_columns)]
        offsets.append(min(each.dictionary_page_offset or each.data_page_offset for each in columns))
        for each in columns:
            if each.path_in_schema in ids:
                known = ids[each.path_in_schema]
                sizes[known] = sizes.get(known, 0) + each.total_compressed_size
    paths = None
    if table.num_rows:
        column = table.column(at_path)
        paths = (str(column[0].as_py()), str(column[-1].as_py()))
    return Remeasured(size_bytes, sizes, tuple(offsets), paths)


def _damaged(path: str) -> BadInput:
    return BadInput(
        "A file with position deletes cannot be read",
        field="data-files",
        fix="Restore the file, or rewrite the table's deletes with an engine.",
        path=path,
    )
