"""Whether files that somebody wants to add can belong to a table.

A maintainer must not break: only what cannot be true is refused, and every refusal names the item. A file
with a wrong partition value or wrong bounds is in the table and never found.
"""

import struct
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any, Final, NoReturn

from cynosure.common.errors import BadInput
from cynosure.iceberg.appending.writing import find_spec, find_type, spec_types
from cynosure.iceberg.manifests.bounds import read_bound, write_bound
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Status
from cynosure.iceberg.manifests.content_file_json import COUNTS
from cynosure.iceberg.manifests.manifest import METRICS, Manifest
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.iceberg.pruning.partition_check import find_contradiction
from cynosure.iceberg.single_value import decimal_limit, fit_decimal
from cynosure.iceberg.sorting import UNSORTED_ID
from cynosure.iceberg.transforms import VOID
from cynosure.iceberg.types import BOOLEAN, DecimalType, Type

FORMATS: Final = ("avro", "orc", "parquet")
FIRST_RESERVED_ID: Final = 2_147_483_447
"""Column ids from here on are those of Iceberg's own columns, which no schema has."""


def check_files(
    files: Sequence[ContentFile],
    metadata: TableMetadata,
    *,
    is_allowed: Callable[[str], bool],
    field: str = "data-files",
) -> None:
    """Refuse files that are not data files of this table, naming the item, e.g. `data-files[3].partition[0]`.

    `is_allowed` says whether the table may hold a file at a location.
    """
    check = _Check(metadata, is_allowed)
    seen: dict[str, int] = {}
    for at, file in enumerate(files):
        item = _Item(f"{field}[{at}]", file)
        first = seen.setdefault(file.path, at)
        if first != at:
            item.refuse("file-path", f"Send the file once: {field}[{first}] is the same.")
        check.check(item)


class _Item:
    """A file and where it is in the request."""

    __slots__ = ("field", "file")

    def __init__(self, field: str, file: ContentFile) -> None:
        self.field = field
        self.file = file

    def refuse(
        self, name: str, fix: str, message: str = "The file cannot be added", **details: Any
    ) -> NoReturn:
        raise BadInput(message, field=f"{self.field}.{name}", fix=fix, path=self.file.path[:200], **details)


class _Check:
    """What is asked of every file, with what the table says looked up once."""

    def __init__(self, metadata: TableMetadata, is_allowed: Callable[[str], bool]) -> None:
        self._metadata = metadata
        self._is_allowed = is_allowed
        self._orders = {UNSORTED_ID, *(one.value.order_id for one in metadata.sort_orders)}
        self._specs: dict[int, tuple[PartitionSpec, tuple[Type | None, ...]] | None] = {}
        self._types: dict[int, Type | None] = {}

    def check(self, item: _Item) -> None:
        file = item.file
        if file.content is not Content.DATA:
            item.refuse(
                "content", "Send data files: delete files are committed by the engine that makes them."
            )
        if file.format not in FORMATS:
            item.refuse("file-format", f"Send one of {', '.join(FORMATS)}.")
        if not self._is_allowed(file.path):
            item.refuse(
                "file-path",
                "Write the file into the location of the table, and name it as the table names its location.",
                "The file is outside of what the table may hold",
            )
        if file.file_size_bytes <= 0:
            item.refuse("file-size-in-bytes", "Send the size of the file, in bytes.")
        if file.record_count < 0:
            item.refuse("record-count", "Send the number of rows.")
        if file.first_row_id is not None:
            item.refuse("first-row-id", "Leave it out: the catalog numbers the rows.")
        if file.sort_order_id is not None and file.sort_order_id not in self._orders:
            item.refuse("sort-order-id", "Name a sort order of the table, or leave it out.")
        offsets = file.split_offsets or ()
        if any(later <= earlier for earlier, later in pairwise(offsets)):
            item.refuse("split-offsets", "Send offsets in ascending order, each once.")
        if offsets and not 0 <= offsets[0] <= offsets[-1] < file.file_size_bytes:
            item.refuse("split-offsets", "Send offsets inside the file.")
        self._check_partition(item)
        self._check_metrics(item)

    def _check_partition(self, item: _Item) -> None:
        file = item.file
        found = self._find_spec(file.spec_id)
        if found is None:
            item.refuse("spec-id", "Name a partition spec of the table.", spec_id=file.spec_id)
        spec, types = found
        if len(file.partition) != len(types):
            item.refuse("partition", f"Send {len(types)} values: one for each field of the spec.")
        for at, (field, type_, value) in enumerate(zip(spec.fields, types, file.partition, strict=True)):
            if value is None:
                continue
            if field.transform == VOID:
                item.refuse(f"partition[{at}]", "Send null: the field is void.", column=field.name)
            if type_ is not None and not _is_value(type_, value):
                item.refuse(f"partition[{at}]", f"Send a value of type {type_}.", column=field.name)
        contradiction = find_contradiction(file, spec, self._find_type)
        if contradiction is not None:
            item.refuse(
                f"partition[{contradiction}]",
                "Send the partition that the rows of the file are in.",
                "The file's own metrics say that its rows are in another partition",
                column=spec.fields[contradiction].name,
            )

    def _check_metrics(self, item: _Item) -> None:
        file = item.file
        for name in METRICS:
            for id_ in getattr(file, name) or ():
                if id_ < FIRST_RESERVED_ID and self._find_type(id_) is None:
                    item.refuse(_kebab(name), "Send metrics of columns of the table only.", id=id_)
        for name in COUNTS:
            for id_, count in (getattr(file, name) or {}).items():
                if count < 0:
                    item.refuse(_kebab(name), "Send counts that are not negative.", id=id_)
                if name in _OF_VALUES and count > (file.value_counts or {}).get(id_, count):
                    item.refuse(_kebab(name), "Send at most as many as values.", id=id_)
        for id_, low in (file.lower_bounds or {}).items():
            high = (file.upper_bounds or {}).get(id_)
            type_ = self._find_type(id_)
            if high is None or type_ is None:
                continue
            lower, upper = read_bound(type_, low), read_bound(type_, high)
            if lower is not None and upper is not None and lower > upper:
                item.refuse("lower-bounds", "Send a lower bound that is not above the upper one.", id=id_)

    def _find_spec(self, spec_id: int) -> tuple[PartitionSpec, tuple[Type | None, ...]] | None:
        if spec_id not in self._specs:
            spec = find_spec(self._metadata, spec_id)
            self._specs[spec_id] = None if spec is None else (spec, spec_types(self._metadata, spec))
        return self._specs[spec_id]

    def _find_type(self, column: int) -> Type | None:
        if column not in self._types:
            self._types[column] = find_type(self._metadata, column)
        return self._types[column]


_OF_VALUES: Final = ("null_value_counts", "nan_value_counts")


def _is_value(type_: Type, value: Any) -> bool:
    if isinstance(value, bool) != (type_ == BOOLEAN):
        return False
    try:
        if isinstance(type_, DecimalType):
            return fit_decimal(type_, value) is not None and bool(abs(value) < decimal_limit(type_))
        write_bound(type_, value)
    except (struct.error, TypeError, ValueError, AttributeError, ArithmeticError):
        return False
    return True


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def find_present(manifest: Manifest, paths: Collection[str]) -> str | None:
    """One of these paths at which the manifest has a file that is not deleted; None when it has none."""
    rows = manifest.paths.find_any(paths)
    return next((manifest.paths[row] for row in rows if manifest.statuses[row] != Status.DELETED), None)
