"""The fast path: plain files through DataFusion, which decodes them with about half the CPU.

Taken for local files and S3, for columns without parts. Parts of filters whose meaning is surely the same
there are evaluated while reading, so that other columns of rows that do not pass are not decoded; all other
parts are evaluated here, by the code of the complete path. Where rows are deleted, nothing is evaluated while
reading: rows come in the order of the file, and are counted.

DataFusion fetches all that it reads of a row group before it decodes any of it, and its own pool does not
count that: so it is counted here, and a file for which there is no memory goes the complete path. Files are
read in ranges, about one for a row group: where no row passes, the end of a range is all that is seen of it.
Of its client of S3 nothing can be set, so whoever waits for it does so in `bounded.py`.

A maintainer must not break: both paths give the same rows (tests/query/scan/test_paths.py). Whatever this one
is not made for, and whatever fails before its first batch, goes the complete path, which also says why.
"""

import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import chain, pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext
from datafusion.object_store import AmazonS3
from msgspec import Struct, structs

from cynosure.common.errors import CynosureError
from cynosure.query.errors import NotReadable, OutOfMemory
from cynosure.query.scan.bounded import Bounded, may_begin
from cynosure.query.scan.deletes.applied import FileDeletes
from cynosure.query.scan.memory import Budget, Held
from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.parquet import ParquetSource, RowGroup, reading
from cynosure.query.scan.prepared import Prepared
from cynosure.query.scan.primitives import is_int96
from cynosure.query.scan.pushed import column, find_pushable
from cynosure.query.scan.row_filter import RowFilter, make_filter, split_conjuncts
from cynosure.query.scan.row_groups import GroupTest
from cynosure.query.scan.shape import FileColumn, find_columns
from cynosure.query.scan_task import DataFile
from cynosure.storage.backends.s3_bucket import endpoint_of
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.location import Location
from cynosure.storage.open_vended import require, s3_config_of

_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_.=/-]+")
"""Other characters mean something to DataFusion's paths."""
_HARMLESS: Final = frozenset(
    {
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_EC2_METADATA_DISABLED",
        "AWS_CA_BUNDLE",
        "AWS_EXECUTION_ENV",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    }
)
"""Variables that DataFusion's store does not read, or not where a region and keys are given. Where any other
AWS_… is set, it is not used: it could decide which store is reached, or how."""
WORTH_BYTES = 2**20
"""Files with less to read, without compression, are read faster than a context is made."""
_MOST_RANGES: Final = 512
_BYTES_PER_ROW: Final = 8
"""What DataFusion notes of each row of a row group while it filters: measured, at most."""
_BYTES_BESIDES: Final = 32 * 2**20
"""What it holds whatever it reads, measured."""
_RANGE: Final = re.compile(r":(\d+)\.\.(\d+)\]")
_PLAIN_TYPES: Final = {
    pa.string_view(): pa.string(),
    pa.large_string(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.large_binary(): pa.binary(),
}


_Steps = Generator[pa.RecordBatch | None, None, None] | Bounded[pa.RecordBatch | None]
"""What is read, step by step; `None` at the end of each range."""


class _Ranges(Struct, frozen=True):
    """How a file is divided so that some ranges have all wanted row groups, and none of another's part."""

    count: int
    chosen: tuple[int, ...]
    groups: tuple[RowGroup, ...]
    """What is in them."""


def read_fast(
    prepared: Prepared,
    file: DataFile,
    parquet: ParquetSource,
    files: TaskFiles,
    deletes: FileDeletes,
    budget: Budget,
) -> Iterator[pa.RecordBatch | None] | None:
    """A file's rows as they are shown; `None`: not by this path."""
    location = files.locate(file.path)
    is_small = ((file.end - file.begin) or file.size_bytes) < WORTH_BYTES // 4
    if is_small or not _can_reach(location, files):
        return None
    scan = _FastScan.plan(prepared, file, parquet, deletes)
    return None if scan is None else scan.begin(location, files, budget)


def _can_reach(location: Location, files: TaskFiles) -> bool:
    if location.scheme == "file":
        return os.path.isdir("/proc/self/fd")
    if location.scheme != "s3" or files.has_own_authorities or not may_begin():
        return False
    if any(name.upper().startswith("AWS_") and name.upper() not in _HARMLESS for name in os.environ):
        return False
    return all(_PLAIN_PATH.fullmatch(each) for each in location.segments)


class _FastScan:
    def __init__(
        self,
        prepared: Prepared,
        parquet: ParquetSource,
        columns: Sequence[FileColumn],
        schema: pa.Schema,
        ranges: _Ranges,
        deletes: FileDeletes,
    ) -> None:
        self._prepared = prepared
        self._deletes = deletes
        self._parquet = parquet
        self._columns = {each.field.id: each for each in columns}
        self._schema = schema
        self._ranges = ranges
        self._groups = ranges.groups
        self._pushed, self._rest = self._divide()
        shown = {field.id for field in prepared.columns}
        needed = shown.union(deletes.columns, *(each.columns for each in self._rest))
        self._needed = [each for each in columns if each.field.id in needed]
        self._read = [each for each in self._needed if each.position is not None]
        if not self._read:
            # One column is needed to know how many rows there are.
            self._read = [each for each in columns if each.position is not None][:1]

    @classmethod
    def plan(
        cls, prepared: Prepared, file: DataFile, parquet: ParquetSource, deletes: FileDeletes
    ) -> "_FastScan | None":
        """None: this file is not for this path."""
        schema = _plain_schema(parquet.schema)
        ids = {field.id for field in prepared.columns} | prepared.tested | deletes.columns
        wanted = [field for field in prepared.schema.fields if field.id in ids]
        columns = find_columns(wanted, schema, prepared.task.name_mapping, file.constants)
        found = [schema.field(each.position) for each in columns if each.position is not None]
        if not found or any(pa.types.is_nested(each.type) or is_int96(each) for each in found):
            return None
        names = [field.name for field in schema]
        if any(names.count(each.name) > 1 or "\0" in each.name for each in found):
            return None
        ranges = _find_ranges(parquet, file, GroupTest(prepared, file, columns, parquet))
        if ranges is None:
            return None
        plain = pa.schema([each.remove_metadata() for each in found])
        return cls(prepared, parquet, columns, plain, ranges, deletes)

    def begin(
        self, location: Location, files: TaskFiles, budget: Budget
    ) -> Iterator[pa.RecordBatch | None] | None:
        """Rows from now on; `None` when it is not worth it, or neither memory nor DataFusion are enough."""
        if not any(group.rows for group in self._groups):
            return iter(())
        positions = [each.position for each in self._read if each.position is not None]
        if sum(self._parquet.size_of(group, positions) for group in self._groups) < WORTH_BYTES:
            return None
        size = max(map(self._size_of, self._groups))
        if not budget.try_take(size):
            return None
        held, steps = Held(budget, size), None
        try:
            steps = self._open(location, files, positions, budget, held)
            first = next(steps)
        except BaseException as error:
            if steps is not None:
                steps.close()
            held.give_back()
            if not isinstance(error, CynosureError) and not _is_of_datafusion(error):
                raise
            # The complete path says why.
            return None
        return self._shown(first, steps, budget, held)

    def _size_of(self, group: RowGroup) -> int:
        """What a row group takes while it is read, also for columns that are only tested."""
        positions = [each.position for each in self._columns.values() if each.position is not None]
        noted = group.rows * _BYTES_PER_ROW if self._pushed else 0
        return self._parquet.whole_bytes(group, positions) + noted + _BYTES_BESIDES

    def _open(
        self, location: Location, files: TaskFiles, positions: Sequence[int], budget: Budget, held: Held
    ) -> _Steps:
        largest = max(self._groups, key=lambda group: self._parquet.size_of(group, positions))
        at_once = self._parquet.rows_at_once(largest, positions, self._prepared.task.batch_rows, budget)
        context = _make_context(self._prepared.task.memory_limit_bytes, at_once, self._ranges.count)
        if location.scheme == "file":
            return self._steps(context, f"/proc/self/fd/{self._parquet.fileno()}")
        context.register_object_store("s3://", _make_store(location, files), location.authority)
        path = f"s3://{location.authority}/{'/'.join(location.segments)}"
        return Bounded(partial(self._steps, context, path), files.operation_timeout_s, held.detach)

    def _steps(self, context: SessionContext, path: str) -> Generator[pa.RecordBatch | None, None, None]:
        frame = context.read_parquet(path, file_extension="", schema=self._schema)
        for expression in self._pushed:
            frame = frame.filter(expression)
        frame = frame.select(*(column(self._name_of(each)) for each in self._read))
        if self._ranges.count == 1:
            yield from _read_ranges([frame.execute_stream()])
            return
        _check_ranges(frame, self._ranges)
        streams = frame.execute_stream_partitioned()
        yield from _read_ranges([streams[at] for at in self._ranges.chosen])

    def _name_of(self, column: FileColumn) -> str:
        name: str = self._parquet.schema.field(column.position).name
        return name

    def _shown(
        self, first: pa.RecordBatch | None, steps: _Steps, budget: Budget, held: Held
    ) -> Iterator[pa.RecordBatch | None]:
        rows = 0
        try:
            for batch in chain([first], _translated(steps)):
                if batch is None:
                    yield None
                    continue
                with budget.holding(batch.nbytes):
                    for part, place in self._place(batch, rows):
                        with reading():
                            shown = self._finish(part, place)
                        yield shown
                rows += batch.num_rows
        finally:
            steps.close()
            held.give_back()
        if not self._pushed and rows != sum(group.rows for group in self._groups):
            raise NotReadable("A file has another number of rows than its footer says")

    def _place(self, batch: pa.RecordBatch, begin: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Parts of a batch, and where in the file each begins, if that matters."""
        if not self._deletes:
            yield batch, 0
            return
        passed = 0
        for group in self._groups:
            low, high = max(begin, passed), min(begin + batch.num_rows, passed + group.rows)
            if low < high:
                yield batch.slice(low - begin, high - low), group.first_row + low - passed
            passed += group.rows

    def _finish(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch | None:
        rows = batch.num_rows
        read = {each.field.id: each.read(batch.column(at)) for at, each in enumerate(self._read)}
        columns: Mapping[int, pa.Array] = {
            each.field.id: read[each.field.id] if each.position is not None else each.fill(rows)
            for each in self._needed
        }
        left = self._deletes.keep(columns, first_row, rows)
        tests = [each.evaluate(columns, rows) for each in self._rest] + ([] if left is None else [left])
        if tests:
            kept = reduce(pc.and_kleene, tests)
            rows = kept.true_count
            columns = {id_: values.filter(kept) for id_, values in columns.items()}
        return self._prepared.finish(columns, rows) if rows else None

    def _divide(self) -> tuple[list[Any], list[RowFilter]]:
        """Parts of the filters that DataFusion evaluates, and all others."""
        pushed, rest = [], []
        names = {
            each.field.id: self._name_of(each)
            for each in self._columns.values()
            if each.position is not None and each.convert is None
        }
        for whole in (self._prepared.row_filter, self._prepared.predicates):
            for part in split_conjuncts(whole.expression):
                expression = None if self._deletes else find_pushable(part, names, self._counts_nulls)
                if expression is None:
                    rest.append(make_filter(part, self._prepared.schema))
                else:
                    pushed.append(expression)
        return pushed, rest

    def _counts_nulls(self, field_id: int) -> bool:
        position = self._columns[field_id].position
        return position is not None and self._parquet.counts_nulls(self._groups, position)


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """As it is asked of DataFusion: texts and bytes in their usual form."""
    fields = []
    for field in schema:
        type_ = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        fields.append(field.with_type(_PLAIN_TYPES.get(type_, type_)))
    return pa.schema(fields)


def _make_context(memory_bytes: int, batch_rows: int, ranges: int) -> SessionContext:
    """A context for one file: what it keeps of a file must not be taken for another's."""
    settings = {
        "datafusion.execution.parquet.pushdown_filters": "true",
        "datafusion.execution.parquet.schema_force_view_types": "false",
        "datafusion.execution.collect_statistics": "false",
        # It would keep tested columns of the whole row group: a third more memory, and more CPU besides.
        "datafusion.execution.parquet.max_predicate_cache_size": "0",
    }
    if ranges > 1:
        # Otherwise one stream reads what belongs to another.
        settings["datafusion.execution.enable_file_stream_work_stealing"] = "false"
    config = SessionConfig(settings).with_target_partitions(ranges).with_batch_size(batch_rows)
    config = config.with_repartition_file_scans(ranges > 1).with_repartition_file_min_size(0)
    runtime = RuntimeEnvBuilder().with_disk_manager_disabled().with_fair_spill_pool(memory_bytes)
    return SessionContext(config, runtime)


def _make_store(location: Location, files: TaskFiles) -> AmazonS3:
    properties = files.credentials.properties
    key, secret = require(properties, "s3.access-key-id", "s3.secret-access-key")
    config = s3_config_of(properties, files.places)
    if config.endpoint is not None and not config.path_style_access:
        # Its client names buckets in the path, which Amazon takes, and others perhaps do not.
        raise NotReadable("The store wants the bucket in the name of its host")
    endpoint, _ = endpoint_of(location.authority, structs.replace(config, path_style_access=True))
    return AmazonS3(
        location.authority,
        region=config.region,
        access_key_id=key,
        secret_access_key=secret,
        session_token=properties.get("s3.session-token"),
        endpoint=endpoint,
        allow_http=endpoint.startswith("http://"),
    )


# Parts of files.


def _find_ranges(parquet: ParquetSource, file: DataFile, test: GroupTest) -> _Ranges | None:
    """DataFusion divides a file evenly: a division with a border where the part of the file has its own."""
    groups = parquet.find_groups(file)
    asked = {group.number for group in groups}
    wanted = {group.number for group in groups if test.can_pass(group)}
    count = parquet.metadata.num_row_groups
    begins = [parquet.find_begin(number) for number in range(count)]
    # Small ranges first: the end of each is seen.
    finest = max(1, min(count, _MOST_RANGES))
    divisions = (*range(finest, _MOST_RANGES + 1), *range(finest - 1, 0, -1))
    if not _are_begins_its_own(parquet, begins):
        divisions = (1,)
    for parts in divisions:
        size = -(-file.size_bytes // parts)
        homes = [begin // size for begin in begins]
        own = {homes[number] for number in asked}
        if all((homes[number] in own) == (number in asked) for number in range(count)):
            chosen = {homes[number] for number in wanted}
            read = tuple(group for group in groups if homes[group.number] in chosen)
            return _Ranges(parts, tuple(sorted(chosen)), read)
    return None


def _are_begins_its_own(parquet: ParquetSource, begins: Sequence[int]) -> bool:
    """Whether DataFusion finds row groups where we do, and ranges have them in the order of the file."""
    about = parquet.metadata
    # It takes a dictionary at its word that is said to be at 0, which means none, or behind the data.
    dictionaries = [about.row_group(at).column(0).dictionary_page_offset for at in range(len(begins))]
    is_same = all(each in (None, begin) for each, begin in zip(dictionaries, begins, strict=True))
    return is_same and all(one <= other for one, other in pairwise(begins))


def _read_ranges(streams: Iterable[Any]) -> Iterator[pa.RecordBatch | None]:
    for stream in streams:
        for batch in stream:
            yield batch.to_pyarrow()
        yield None


def _check_ranges(frame: Any, ranges: _Ranges) -> None:
    """That it divides the file as we think; otherwise the complete path reads it."""
    plan = frame.execution_plan()
    if plan.partition_count != ranges.count:
        raise NotReadable("A file is divided otherwise than expected")
    found = _RANGE.findall(plan.display_indent())
    size = int(found[0][1]) - int(found[0][0])
    for at, (begin, _) in enumerate(found):
        if int(begin) != at * size:
            raise NotReadable("A file is divided otherwise than expected")


def _translated(batches: Iterator[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch | None]:
    while True:
        with _translating():
            try:
                batch = next(batches)
            except StopIteration:
                return
        yield batch


@contextmanager
def _translating() -> Iterator[None]:
    """What DataFusion says, without its words: they may hold values or paths."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, CynosureError) or not _is_of_datafusion(error):
            raise
        text = str(error)
        if "Resources exhausted" in text:
            raise OutOfMemory(
                "A scan needs more memory than it may have", fix="Raise query.memory_limit."
            ) from None
        if "Object Store" in text or "ObjectStore" in text:
            raise StorageUnavailable("The storage does not answer or fails") from None
        raise NotReadable(
            "A file of the table cannot be read: it is damaged or of an unknown kind",
            fix="Check the file with its writer; restore or rewrite it.",
        ) from None


def _is_of_datafusion(error: BaseException) -> bool:
    """It raises plain exceptions; and where it panics, one that is no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
