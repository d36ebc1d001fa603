"""Position delete files: the path of a data file and the place of a row, many times."""

from array import array
from collections.abc import Callable, Collection
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cynosure.iceberg.types import LONG, STRING, NestedField
from cynosure.query.errors import NotReadable
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.parquet import open_parquet, reading
from cynosure.query.scan.shape import find_columns
from cynosure.query.scan_task import DataFile, DeleteFile

PATH: Final = NestedField(2_147_483_546, "file_path", STRING, is_required=True)
PLACE: Final = NestedField(2_147_483_545, "pos", LONG, is_required=True)
_ROWS_AT_ONCE: Final = 65_536


def read_positions(
    delete: DeleteFile, wanted: Collection[str], files: TaskFiles, budget: Budget, move: Callable[[], None]
) -> dict[str, "array[int]"]:
    """Places of deleted rows by data file, of the wanted ones; `move` is called as it goes on."""
    found: dict[str, array[int]] = {}
    paths = pa.array(sorted(wanted), pa.string())
    whole = DataFile(delete.path, delete.size_bytes, delete.record_count, delete.format)
    with open_parquet(files, delete.path, delete.size_bytes, delete.record_count or None) as parquet:
        columns = find_columns((PATH, PLACE), parquet.schema, b"", {})
        positions = [each.position for each in columns if each.position is not None]
        for group in parquet.find_groups(whole):
            with budget.holding(parquet.piece_bytes(group, positions)):
                for batch in parquet.batches(group, positions, _ROWS_AT_ONCE):
                    move()
                    with reading():
                        path, place = (each.read(batch[each.position or 0]) for each in columns)
                        _add(found, path, place, paths, budget)
    return found


def _add(
    found: dict[str, "array[int]"], path: pa.Array, place: pa.Array, paths: pa.Array, budget: Budget
) -> None:
    if path.null_count or place.null_count:
        raise NotReadable("A delete file has rows without a file or place")
    # Sorted by file, mostly: whole runs of one path.
    for each in pc.unique(path.filter(pc.is_in(path, value_set=paths))).to_pylist():
        chosen = place.filter(pc.equal(path, each))
        budget.take(chosen.nbytes)
        found.setdefault(each, array("q")).frombytes(to_bytes(chosen))


def to_bytes(values: pa.Array) -> bytes:
    """Of numbers of 64 bits."""
    held = values.buffers()[1]
    return bytes(memoryview(held)[values.offset * 8 : (values.offset + len(values)) * 8]) if held else b""
