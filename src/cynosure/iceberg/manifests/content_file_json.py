"""Content files in the JSON of the REST protocol: of scan tasks, and of requests that append files.

Bounds have two forms in practice. The protocol says: a value of the column's type. Iceberg's Java client
reads and writes the hexadecimal digits of the bytes instead, and fails on anything else. `BoundForm` says
which; there is no form that both take.

A maintainer must not break: what is read is exact and complete, or refused with the path of the item. A file
that is appended with a wrong partition value or bound is never found by a query again.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from itertools import pairwise
from math import isfinite, isnan
from typing import Any, Final, NoReturn

from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.bounds import read_bound, write_bound
from cynosure.iceberg.manifests.content_file import Content, ContentFile
from cynosure.iceberg.manifests.manifest import METRICS
from cynosure.iceberg.single_value import LONG_RANGE, read_value, write_value
from cynosure.iceberg.types import BINARY, MAX_INT, Type, is_floating, is_orderable

FORMATS: Final = ("avro", "orc", "parquet", "puffin")
CONTENTS: Final = {
    Content.DATA: "data",
    Content.POSITION_DELETES: "position-deletes",
    Content.EQUALITY_DELETES: "equality-deletes",
}
_CONTENT_BY_NAME: Final = {name: content for content, name in CONTENTS.items()}
COUNTS: Final = METRICS[:4]
_BOUNDS: Final = METRICS[4:]
_NOT_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
"""What JSON has no numbers for, as `partition_json` writes it."""
MAX_PATH: Final = 8192
MAX_ITEMS: Final = 100_000
"""Of any list or map of one file."""


class BoundForm(Enum):
    """How bounds are written."""

    TYPED = "typed"
    """As the protocol says."""
    BINARY = "binary"
    """As Iceberg's Java client does."""


class JsonTypes(Struct, frozen=True):
    """What is needed to know what a value means."""

    partition_types: Mapping[int, tuple[Type | None, ...]]
    """For each spec, the types of its fields; None for a field whose column is gone."""
    find_type: Callable[[int], Type | None]
    """The type of a column."""
    bound_form: BoundForm = BoundForm.TYPED


# Writing.


def file_to_json(
    file: ContentFile, kinds: JsonTypes, *, sequence_number: int | None = None
) -> dict[str, Any]:
    """A file, ready to encode. What it does not have is left out.

    The sequence number of the data is told with a first row id only: where rows have ids, readers need both.
    """
    types = kinds.partition_types.get(file.spec_id, ())
    document: dict[str, Any] = {
        "content": CONTENTS[file.content],
        "file-path": file.path,
        "file-format": file.format,
        "spec-id": file.spec_id,
        "partition": [
            partition_json(type_, value) for type_, value in zip(types, file.partition, strict=True)
        ],
        "file-size-in-bytes": file.file_size_bytes,
        "record-count": file.record_count,
    }
    if file.key_metadata is not None:
        document["key-metadata"] = write_value(BINARY, file.key_metadata)
    for name in ("split_offsets", "sort_order_id"):
        _put(document, name, getattr(file, name))
    if file.content is Content.DATA:
        for name in COUNTS:
            _put(document, name, count_map(getattr(file, name)))
        for name in _BOUNDS:
            _put(document, name, bound_map(getattr(file, name), kinds))
        _put(document, "first_row_id", file.first_row_id)
        if file.first_row_id is not None and sequence_number is not None:
            document["data-sequence-number"] = sequence_number
    elif file.content is Content.POSITION_DELETES:
        _put(document, "referenced_data_file", file.referenced_data_file)
        _put(document, "content_offset", file.content_offset)
        _put(document, "content_size_in_bytes", file.content_size_bytes)
    else:
        _put(document, "equality_ids", file.equality_ids)
    return document


def _put(document: dict[str, Any], name: str, value: Any) -> None:
    if value is not None:
        document[name.replace("_", "-")] = value


def partition_json(type_: Type | None, value: Any) -> Any:
    """One partition value, ready to encode."""
    if value is None or type_ is None:
        return None
    if _is_not_a_number(type_, value):
        # Text, as Iceberg's Java client writes it. A reader that cannot take it fails; null would be a lie.
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return write_value(type_, value)


def count_map(counts: dict[int, int] | None) -> dict[str, Any] | None:
    """Counts of columns, ready to encode."""
    return None if counts is None else {"keys": list(counts), "values": list(counts.values())}


def bound_map(bounds: dict[int, bytes] | None, kinds: JsonTypes) -> dict[str, Any] | None:
    """Bounds of columns, ready to encode."""
    if bounds is None:
        return None
    if kinds.bound_form is BoundForm.BINARY:
        return {"keys": list(bounds), "values": [data.hex().upper() for data in bounds.values()]}
    keys, values = [], []
    for id_, data in bounds.items():
        type_ = kinds.find_type(id_)
        value = None if type_ is None else read_bound(type_, data)
        # JSON has no infinity, and a bound that cannot be told is better left out than told wrong.
        if type_ is not None and value is not None and not _is_not_a_number(type_, value):
            keys.append(id_)
            values.append(write_value(type_, value))
    return {"keys": keys, "values": values}


def _is_not_a_number(type_: Type, value: Any) -> bool:
    return is_floating(type_) and not isfinite(value)


# Reading.


def file_from_json(json: object, kinds: JsonTypes, *, field: str) -> ContentFile:
    """A file from decoded JSON. Raises `BadInput` naming the item, e.g. `data-files[3].lower-bounds`."""
    if not isinstance(json, dict):
        _refuse("A file is an object", field, "Send the object of a content file.")
    item = _Item(json, field)
    content = _CONTENT_BY_NAME.get(str(json.get("content")).lower().replace("_", "-"))
    if content is None:
        item.refuse("content", "Send data, position-deletes or equality-deletes.")
    format_ = str(json.get("file-format")).lower()
    if format_ not in FORMATS:
        item.refuse("file-format", f"Send one of {', '.join(FORMATS)}.")
    spec_id = item.whole("spec-id", high=MAX_INT)
    types = kinds.partition_types.get(spec_id)
    if types is None:
        item.refuse("spec-id", "Name a partition spec of the table.")
    is_data = content is Content.DATA
    file = ContentFile(
        path=item.text("file-path"),
        format=format_,
        spec_id=spec_id,
        partition=_read_partition(item, types),
        record_count=item.whole("record-count"),
        file_size_bytes=item.whole("file-size-in-bytes"),
        content=content,
        key_metadata=item.maybe("key-metadata", lambda value, at: read_value(BINARY, value, field=at)),
        split_offsets=item.wholes("split-offsets", high=LONG_RANGE[1]),
        equality_ids=item.wholes("equality-ids", high=MAX_INT),
        sort_order_id=item.maybe_whole("sort-order-id", high=MAX_INT),
        first_row_id=item.maybe_whole("first-row-id"),
        referenced_data_file=item.text("referenced-data-file") if "referenced-data-file" in json else None,
        content_offset=item.maybe_whole("content-offset"),
        content_size_bytes=item.maybe_whole("content-size-in-bytes"),
        **{name: item.maybe(_kebab(name), _read_counts) for name in COUNTS},
        **{
            name: item.maybe(_kebab(name), lambda value, at: _read_bounds(value, at, kinds))
            for name in _BOUNDS
        },
    )
    _check(file, item, is_data=is_data)
    return file


class _Item:
    """One file of a request, and where it is there."""

    def __init__(self, json: dict[str, Any], field: str) -> None:
        self._json = json
        self.field = field

    def refuse(self, name: str, fix: str) -> NoReturn:
        path = self._json.get("file-path")
        raise BadInput(
            "The value is missing or not what it should be",
            field=f"{self.field}.{name}",
            fix=fix,
            path=path[:200] if isinstance(path, str) else None,
        )

    def get(self, name: str) -> Any:
        return self._json.get(name)

    def text(self, name: str) -> str:
        value = self._json.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= MAX_PATH or not value.isprintable():
            self.refuse(name, "Send the location of a file.")
        return value

    def whole(self, name: str, *, high: int = LONG_RANGE[1]) -> int:
        value = self._json.get(name)
        if type(value) is not int or not 0 <= value <= high:
            self.refuse(name, "Send a whole number that is not negative.")
        return value

    def maybe_whole(self, name: str, *, high: int = LONG_RANGE[1]) -> int | None:
        return None if self._json.get(name) is None else self.whole(name, high=high)

    def wholes(self, name: str, *, high: int) -> tuple[int, ...] | None:
        values = self._json.get(name)
        if values is None:
            return None
        if not isinstance(values, list) or len(values) > MAX_ITEMS:
            self.refuse(name, "Send a list of whole numbers.")
        for at, value in enumerate(values):
            if type(value) is not int or not 0 <= value <= high:
                self.refuse(f"{name}[{at}]", "Send a whole number that is not negative.")
        return tuple(values)

    def maybe(self, name: str, read: Callable[[Any, str], Any]) -> Any:
        value = self._json.get(name)
        return None if value is None else read(value, f"{self.field}.{name}")


def _read_partition(item: _Item, types: tuple[Type | None, ...]) -> tuple[Any, ...]:
    values = item.get("partition")
    if not isinstance(values, list) or len(values) != len(types):
        item.refuse("partition", f"Send a list of {len(types)} values: one for each field of the spec.")
    return tuple(
        _read_partition_value(item, at, value, type_)
        for at, (value, type_) in enumerate(zip(values, types, strict=True))
    )


def _read_partition_value(item: _Item, at: int, value: Any, type_: Type | None) -> Any:
    if value is None:
        return None
    if type_ is None:
        item.refuse(f"partition[{at}]", "Send null: the column of this field is gone.")
    if is_floating(type_) and value in _NOT_NUMBERS:
        return float(value)
    return read_value(type_, value, field=f"{item.field}.partition[{at}]")


def _read_counts(json: Any, field: str) -> dict[int, int]:
    counts: dict[int, int] = {}
    for at, (key, value) in enumerate(_read_pairs(json, field)):
        if type(value) is not int or not 0 <= value <= LONG_RANGE[1]:
            _refuse(
                "A count is a whole number", f"{field}.values[{at}]", "Send a number that is not negative."
            )
        counts[key] = value
    return counts


def _read_bounds(json: Any, field: str, kinds: JsonTypes) -> dict[int, bytes]:
    bounds: dict[int, bytes] = {}
    for at, (key, value) in enumerate(_read_pairs(json, field)):
        type_ = kinds.find_type(key)
        if type_ is None or not is_orderable(type_):
            _refuse(
                "There is no column with this id that has bounds",
                f"{field}.keys[{at}]",
                "Send bounds for columns of the table only.",
                id=key,
            )
        place = f"{field}.values[{at}]"
        if kinds.bound_form is BoundForm.BINARY:
            data: bytes = read_value(BINARY, value, field=place)
            if read_bound(type_, data) is None:
                _refuse("The bytes are no value of the column's type", place, "Send another bound.", id=key)
            bounds[key] = data
        else:
            bounds[key] = write_bound(type_, read_value(type_, value, field=place))
    return bounds


def _read_pairs(json: Any, field: str) -> list[tuple[int, Any]]:
    keys = json.get("keys") if isinstance(json, dict) else None
    values = json.get("values") if isinstance(json, dict) else None
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        _refuse("A map is two lists of one length", field, "Send keys and as many values.")
    if len(keys) > MAX_ITEMS:
        _refuse("A map has too many items", field, f"Send at most {MAX_ITEMS}.")
    for at, key in enumerate(keys):
        if type(key) is not int or not 0 <= key <= MAX_INT:
            _refuse("A key is the id of a column", f"{field}.keys[{at}]", "Send the id of a column.")
    if len(set(keys)) != len(keys):
        _refuse("A map names a column twice", f"{field}.keys", "Send each column once.")
    return list(zip(keys, values, strict=True))


def _check(file: ContentFile, item: _Item, *, is_data: bool) -> None:
    """What the parts of a file say together."""
    offsets = file.split_offsets or ()
    if any(later <= earlier for earlier, later in pairwise(offsets)):
        item.refuse("split-offsets", "Send offsets in ascending order, each once.")
    if offsets and offsets[-1] >= file.file_size_bytes:
        item.refuse("split-offsets", "Send offsets inside the file.")
    if (file.content is Content.EQUALITY_DELETES) != bool(file.equality_ids):
        item.refuse("equality-ids", "Send the columns of an equality delete file, and only of such a file.")
    if (file.content_offset is None) != (file.content_size_bytes is None):
        item.refuse("content-size-in-bytes", "Send content-offset and content-size-in-bytes together.")
    if file.content is not Content.POSITION_DELETES and (
        file.referenced_data_file is not None or file.content_offset is not None
    ):
        item.refuse("referenced-data-file", "Send it for position delete files only.")
    if file.is_deletion_vector and (file.referenced_data_file is None or file.content_offset is None):
        item.refuse("referenced-data-file", "Send the data file and the place of a deletion vector.")
    if is_data and file.format == "puffin":
        item.refuse("file-format", "Send the format of the data: avro, orc or parquet.")
    for name in ("null_value_counts", "nan_value_counts"):
        for id_, count in (getattr(file, name) or {}).items():
            if count > (file.value_counts or {}).get(id_, count):
                item.refuse(_kebab(name), f"Send at most as many as values: column {id_} has fewer.")


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _refuse(message: str, field: str, fix: str, **details: Any) -> NoReturn:
    raise BadInput(message, field=field, fix=fix, **details)
