"""A task, read and checked once: what every file of it needs, before any file is opened.

A maintainer must not break: whatever cannot be applied is an error here, before the first row is read.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cynosure.common.errors import CynosureError
from cynosure.iceberg.pruning.normal import Normal, normalize
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.types import NestedField
from cynosure.query.arrow_types import find_unsupported, to_arrow
from cynosure.query.errors import NotReadable
from cynosure.query.scan.masks import Masker, is_touched, make_maskers
from cynosure.query.scan.row_filter import NotUnderstood, RowFilter, read_filter
from cynosure.query.scan_task import ScanTask


class Prepared(Struct, frozen=True):
    """What a task says, ready to be used."""

    task: ScanTask
    schema: Schema
    output: pa.Schema
    columns: tuple[NestedField, ...]
    """To give, in order."""
    row_filter: RowFilter
    predicates: RowFilter
    maskers: Mapping[int, Masker]
    by_id: Mapping[int, NestedField]
    """Top-level fields."""
    tests: dict[bytes, tuple[Normal, ...]] = {}
    """See `find_tests`."""

    def find_tests(self, residual: bytes) -> tuple[Normal, ...]:
        """What parts of a file are skipped by: the filters, and what planning left of them for this file.

        Rows are decided by the filters alone: a residual that is not understood says nothing.
        """
        found = self.tests.get(residual)
        if found is None:
            filters = [self.row_filter, self.predicates]
            if residual not in (self.task.row_filter, self.task.predicates):
                with suppress(NotUnderstood):
                    filters.append(read_filter(residual, self.schema, what="residual"))
            tests = [normalize(each.expression) for each in filters if not each.is_always_true]
            # Kept: files of one partition, often all of a task, have the same.
            found = self.tests[residual] = tuple(tests)
        return found

    @property
    def is_filtered(self) -> bool:
        """Whether rows may be left out."""
        return not (self.row_filter.is_always_true and self.predicates.is_always_true)

    @property
    def tested(self) -> frozenset[int]:
        """Top-level columns that decide on rows."""
        return self.row_filter.columns | self.predicates.columns

    def keep(self, columns: Mapping[int, pa.Array], rows: int) -> pa.Array | None:
        """Which of so many rows pass; `None`: all of them."""
        filters = (self.row_filter, self.predicates)
        found = [each.evaluate(columns, rows) for each in filters if not each.is_always_true]
        return reduce(pc.and_kleene, found) if found else None

    def finish(self, columns: Mapping[int, pa.Array], rows: int) -> pa.RecordBatch:
        """What is shown of rows that passed: masks, then the task's columns."""
        if not self.columns:
            return empty_batch(rows)
        made = []
        for field in self.columns:
            masker = self.maskers.get(field.id)
            values = columns[field.id]
            made.append(values if masker is None else masker(values))
        return pa.RecordBatch.from_arrays(made, schema=self.output)


def empty_batch(rows: int) -> pa.RecordBatch:
    """A batch without columns that knows its number of rows."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def prepare(task: ScanTask) -> Prepared:
    """A task's parts. `NotReadable` where one of them cannot be applied exactly."""
    schema, columns = read_columns(task)
    row_filter = read_filter(task.row_filter, schema, what="row filter")
    try:
        predicates = read_filter(task.predicates, schema, what="predicates")
    except NotUnderstood:
        # Only an optimisation: whoever asked applies them again.
        predicates = read_filter(b"true", schema, what="predicates")
    if any(is_touched(each, task.masks, schema) for each in predicates.fields):
        raise NotReadable("A predicate looks at a masked column")
    return Prepared(
        task=task,
        schema=schema,
        output=make_output(columns),
        columns=columns,
        row_filter=row_filter,
        predicates=predicates,
        maskers=make_maskers(task.masks, schema, columns, task.salt),
        by_id={field.id: field for field in schema.fields},
    )


def read_columns(task: ScanTask) -> tuple[Schema, tuple[NestedField, ...]]:
    """The schema to read with, and the columns to give."""
    try:
        schema = decode_schema(task.schema)
    except CynosureError:
        raise NotReadable("The table's schema cannot be read") from None
    by_id = {field.id: field for field in schema.fields}
    missing = [each for each in task.columns if each not in by_id]
    if missing:
        raise NotReadable("A column of the scan is not in the table's schema", field_id=missing[0])
    columns = tuple(by_id[each] for each in task.columns)
    for field in columns:
        if unsupported := find_unsupported(field.type):
            raise NotReadable(
                "The column's type is not read by governed SQL",
                column=field.name,
                type=unsupported,
                fix="Leave the column out of the statement.",
            )
    return schema, columns


def make_output(columns: Sequence[NestedField]) -> pa.Schema:
    """Columns as engines get them; all may be null, as a mask may make them so."""
    return pa.schema([pa.field(field.name, to_arrow(field.type)) for field in columns])
