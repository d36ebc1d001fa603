"""Deletes of a task's files, read when they are first needed and kept while files still need them.

A maintainer must not break: every delete that a data file names is applied, or the scan fails.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from msgspec import structs

from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import NestedField, StructType
from cynosure.query.arrow_types import to_arrow
from cynosure.query.errors import NotReadable
from cynosure.query.scan.deletes.applied import FileDeletes
from cynosure.query.scan.deletes.equality import EqualityDeletes, check_ids
from cynosure.query.scan.deletes.positions import read_positions, to_bytes
from cynosure.query.scan.deletes.vectors import read_vector
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.parquet import check_format, open_parquet, reading
from cynosure.query.scan.prepared import Prepared
from cynosure.query.scan.row_filter import find_path, find_value
from cynosure.query.scan.shape import find_columns
from cynosure.query.scan_task import DataFile, DeleteFile

_ROWS_AT_ONCE = 65_536


class TaskDeletes:
    """All deletes of a task."""

    def __init__(
        self, prepared: Prepared, files: TaskFiles, budget: Budget, move: Callable[[], None]
    ) -> None:
        """`move` is called whenever some more was read, and may raise."""
        self._prepared = prepared
        self._deletes = prepared.task.deletes
        self._files = files
        self._budget = budget
        self._move = move
        self._positions: dict[int, dict[str, array[int]]] = {}
        self._equality: dict[tuple[int, ...], EqualityDeletes] = {}
        self._of_file = 0
        """Bytes of places in the current data file."""

    def load(self, file: DataFile) -> FileDeletes:
        """What is gone from a data file. They are read in a row: places in the one before are not kept."""
        self._budget.give_back(self._of_file)
        self._of_file = 0
        if not file.deletes:
            return FileDeletes()
        if not all(0 <= at < len(self._deletes) for at in file.deletes):
            raise NotReadable("A file names a delete that the scan does not have")
        places: list[array[int]] = []
        by_values: dict[tuple[int, ...], list[int]] = {}
        for at in sorted(set(file.deletes)):
            delete = self._deletes[at]
            match delete.kind:
                case "position":
                    places.append(self._load_positions(at, delete).get(file.path, array("q")))
                case "vector":
                    places.append(read_vector(delete, self._files, self._budget))
                    self._move()
                case "equality":
                    by_values.setdefault(delete.equality_ids, []).append(at)
        equality = [self._load_equality(ids, tuple(group)) for ids, group in by_values.items()]
        return FileDeletes(self._sort(places, file), equality)

    def _sort(self, places: Sequence["array[int]"], file: DataFile) -> "array[int] | None":
        """All together, each once."""
        size_bytes = sum(len(each) * each.itemsize for each in places)
        if not size_bytes:
            return None
        self._budget.take(size_bytes)
        self._of_file = size_bytes
        # Joined, each once, sorted: three more of it for a moment.
        with self._budget.holding(3 * size_bytes):
            parts = [
                pa.Array.from_buffers(pa.int64(), len(each), [None, pa.py_buffer(each)]) for each in places
            ]
            joined = pa.concat_arrays(parts).unique().sort()
            found = array("q", to_bytes(joined))
        if found[0] < 0 or found[-1] >= file.record_count:
            raise NotReadable("A delete names a row that its data file does not have")
        return found

    def _load_positions(self, at: int, delete: DeleteFile) -> dict[str, "array[int]"]:
        if at not in self._positions:
            check_format(delete.format)
            wanted = {file.path for file in self._prepared.task.files if at in file.deletes}
            self._positions[at] = read_positions(delete, wanted, self._files, self._budget, self._move)
        return self._positions[at]

    def _load_equality(self, ids: tuple[int, ...], group: tuple[int, ...]) -> EqualityDeletes:
        # Keyed by the files: other data files may have fewer of them.
        if group not in self._equality:
            check_ids(ids, self._prepared.schema)
            parts = [self._read_equality(ids, self._deletes[at]) for at in group]
            deleted = [pa.concat_arrays([part[at] for part in parts]) for at in range(len(ids))]
            made = EqualityDeletes(ids, self._prepared.schema, deleted)
            self._budget.take(made.size_bytes)
            self._equality[group] = made
        return self._equality[group]

    def _read_equality(self, ids: Sequence[int], delete: DeleteFile) -> list[pa.Array]:
        """The values of each column in a delete file."""
        check_format(delete.format)
        schema = Schema(0, tuple(_prune(self._prepared.schema.fields, ids)))
        paths = [find_path(id_, schema) for id_ in ids]
        whole = DataFile(delete.path, delete.size_bytes, delete.record_count, delete.format)
        found: list[list[pa.Array]] = [[] for _ in ids]
        held = 0
        with open_parquet(
            self._files, delete.path, delete.size_bytes, delete.record_count or None
        ) as parquet:
            columns = find_columns(schema.fields, parquet.schema, self._prepared.task.name_mapping, {})
            positions = [each.position for each in columns if each.position is not None]
            if len(positions) != len(columns):
                raise NotReadable("An equality delete does not have the columns that it names")
            for group in parquet.find_groups(whole):
                with self._budget.holding(parquet.piece_bytes(group, positions)):
                    for batch in parquet.batches(group, positions, _ROWS_AT_ONCE):
                        self._move()
                        with reading():
                            read = {each.field.id: each.read(batch[each.position or 0]) for each in columns}
                        for at, (top, path) in enumerate(paths):
                            values = find_value(read, top, path)
                            self._budget.take(values.nbytes)
                            held += values.nbytes
                            found[at].append(values)
        # What is made of them is counted by whoever keeps it.
        self._budget.give_back(held)
        return [
            pa.concat_arrays(parts) if parts else pa.nulls(0, to_arrow(schema.places[id_].field.type))
            for id_, parts in zip(ids, found, strict=True)
        ]


def _prune(fields: Iterable[NestedField], ids: Sequence[int]) -> Iterator[NestedField]:
    """What leads to these fields. A delete file has nothing beside them, whatever the table requires."""
    for field in fields:
        if field.id in ids:
            yield field
        elif isinstance(field.type, StructType) and (inner := tuple(_prune(field.type.fields, ids))):
            yield structs.replace(field, type=StructType(inner))
