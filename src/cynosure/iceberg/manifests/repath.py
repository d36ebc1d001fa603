"""Manifests and manifest lists for files that are elsewhere now: the same entries, with other paths.

What does not change is taken over as bytes, in the schema that its writer used: fields that nobody here
knows, statuses, inherited numbers left open, values of every type.

A maintainer must not break: nothing but paths, and what was measured anew of a file that had to be rewritten,
is another value afterwards. An entry that is wrong here makes rows appear or vanish in the copy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from struct import error as StructError
from typing import Any, Final, NamedTuple

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.avro.codecs import WRITABLE
from cynosure.iceberg.manifests.avro.container import Block, Container, ReadLimits, read_container
from cynosure.iceberg.manifests.avro.decode import Reader, make_reader
from cynosure.iceberg.manifests.avro.encode import make_writer, write_encoded, write_long
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import Array, Node, Plain, Record, Union, unwrap
from cynosure.iceberg.manifests.content_file import Content, Status
from cynosure.iceberg.manifests.entry_fields import REQUIRED, EntryField, entry_fields
from cynosure.iceberg.manifests.manifest_list import find_list_fields

PATH_COLUMN: Final = 2_147_483_546
"""Field id of the column of position deletes that names data files."""
POSITION_COLUMN: Final = 2_147_483_545
_KEYS: Final = frozenset({117, 119, 121, 126, 129, 138})
"""Field ids of the keys of metrics."""
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_KNOWN: Final = frozenset(
    {
        *("status", "content", "file_path", "file_format", "file_size_in_bytes", "key_metadata"),
        *("referenced_data_file", "column_sizes", "split_offsets", *_BOUNDS),
    }
)

Rename = Callable[[str], str]
"""Where a file is now that was here."""


class NamedFile(NamedTuple):
    """A file as an entry names it."""

    path: str
    status: Status
    content: Content
    format: str
    """In lower case."""
    size_bytes: int
    is_encrypted: bool


class Remeasured(NamedTuple):
    """What is different in a file that was rewritten, but for its path."""

    size_bytes: int
    column_sizes: dict[int, int] | None = None
    """`None`: as they were."""
    split_offsets: tuple[int, ...] | None = None
    paths: tuple[str, str] | None = None
    """The least and the greatest path in a file of position deletes, as they are now."""


class _Field(NamedTuple):
    name: str
    type: Node
    read: Reader


class _Record(NamedTuple):
    data: bytes
    spans: list[tuple[int, int]]
    values: dict[str, Any]
    """Of the fields that are known here."""


def list_named_files(data: bytes, *, path: str) -> Iterator[NamedFile]:
    """All files of a manifest, in its order. Raises `InvalidManifest`."""
    container, fields = _open(data, path)
    for record in _records(container, fields, path):
        found = record.values
        if any(found[name] is None for name in REQUIRED if name in _KNOWN):
            raise InvalidManifest("An entry lacks what every entry has", path=path)
        if found["status"] not in {*Status} or (found.get("content") or 0) not in {*Content}:
            raise InvalidManifest("An entry has an unknown status or content", path=path)
        yield NamedFile(
            found["file_path"],
            Status(found["status"]),
            Content(found.get("content") or 0),
            found["file_format"].lower(),
            found["file_size_in_bytes"],
            bool(found.get("key_metadata")),
        )


def repath_manifest(data: bytes, *, path: str, rename: Rename, rewritten: Mapping[str, Remeasured]) -> bytes:
    """A manifest whose files were renamed, some of them with other contents. Raises `InvalidManifest`."""
    container, fields = _open(data, path)
    places = {field.name: at for at, field in enumerate(fields) if field.name}

    def make_all() -> Iterator[bytes]:
        for record in _records(container, fields, path):
            changed = _change(record.values, rename, rewritten)
            yield _splice(record, fields, {places[name]: value for name, value in changed.items()})

    return _write(container, make_all())


def repath_manifest_list(data: bytes, *, path: str, manifests: Mapping[str, tuple[str, int]]) -> bytes:
    """A list whose manifests are elsewhere, and of another length. Raises `InvalidManifest`."""
    try:
        container = read_container(data)
        places = find_list_fields(container.schema)
    except Malformed as error:
        raise InvalidManifest(error.message, path=path, position=error.position) from error
    names = {at: name for name, at in places.items()}
    record_type = container.schema
    assert isinstance(record_type, Record)  # noqa: S101 - `find_list_fields` refuses others
    fields = [
        _Field(names.get(at, ""), each.type, make_reader(each.type))
        for at, each in enumerate(record_type.fields)
    ]

    def make_all() -> Iterator[bytes]:
        for record in _records(container, fields, path, known=frozenset({"path"})):
            new_path, length = manifests[record.values["path"]]
            yield _splice(record, fields, {places["path"]: new_path, places["length"]: length})

    return _write(container, make_all())


def _change(values: dict[str, Any], rename: Rename, rewritten: Mapping[str, Remeasured]) -> dict[str, Any]:
    """The fields of an entry that are others, with their values as Avro has them."""
    changed: dict[str, Any] = {"file_path": rename(values["file_path"])}
    if values.get("referenced_data_file") is not None:
        changed["referenced_data_file"] = rename(values["referenced_data_file"])
    if values.get("content") != Content.POSITION_DELETES:
        return changed
    # A file that a snapshot took away may be gone: nobody reads it, and its old measures do no harm.
    found = rewritten.get(values["file_path"])
    if found is not None:
        changed["file_size_in_bytes"] = found.size_bytes
        if values.get("column_sizes") is not None and found.column_sizes is not None:
            changed["column_sizes"] = found.column_sizes
        if values.get("split_offsets") is not None and found.split_offsets is not None:
            changed["split_offsets"] = found.split_offsets
    bounds = [dict(values[name]) if values.get(name) is not None else None for name in _BOUNDS]
    lower, upper = (each.get(PATH_COLUMN) if each is not None else None for each in bounds)
    ends = _new_bounds(lower, upper, rename, found)
    for name, bound, end in zip(_BOUNDS, bounds, ends, strict=True):
        if bound is not None and PATH_COLUMN in bound:
            changed[name] = {
                key: end if key == PATH_COLUMN else value
                for key, value in bound.items()
                if key != PATH_COLUMN or end is not None
            }
    return changed


def _new_bounds(
    lower: bytes | None, upper: bytes | None, rename: Rename, found: Remeasured | None
) -> tuple[bytes | None, bytes | None]:
    """Bounds of the column of paths; `None` where there can be none: they may be cut off in the middle."""
    if found is not None and found.paths is not None:
        return found.paths[0].encode(), found.paths[1].encode()
    if lower is not None and lower == upper:
        try:
            only = rename(lower.decode()).encode()
        except UnicodeDecodeError:
            return None, None
        return only, only
    return None, None


def _open(data: bytes, path: str) -> tuple[Container, list[_Field]]:
    try:
        container = read_container(data)
        fields = entry_fields(container.schema)
    except Malformed as error:
        raise InvalidManifest(error.message, path=path, position=error.position) from error
    return container, [_Field(each.name, each.type, _reader_of(each)) for each in fields]


def _reader_of(field: EntryField) -> Reader:
    if field.kind not in ("bounds", "raw counts"):
        return make_reader(field.type)
    # Pairs, with the key first: the order of a pair's fields is the writer's.
    read, at_key = make_reader(field.type), _key_place(field.type)

    def read_pairs(data: bytes, at: int) -> tuple[Any, int]:
        pairs, at = read(data, at)
        return None if pairs is None else [(pair[at_key], pair[1 - at_key]) for pair in pairs], at

    return read_pairs


def _key_place(node: Node) -> int:
    items = unwrap(node)
    pair = items.item if isinstance(items, Array) else None
    if not isinstance(pair, Record) or len(pair.fields) != 2:
        raise Malformed("The metrics of the file are not pairs")
    first = pair.fields[0]
    return 0 if first.id in _KEYS or (first.id is None and first.name == "key") else 1


def _records(
    container: Container, fields: list[_Field], path: str, *, known: frozenset[str] = _KNOWN
) -> Iterator[_Record]:
    try:
        for block in container.blocks(ReadLimits()):
            yield from _read_block(block, fields, known)
    except Malformed as error:
        raise InvalidManifest(error.message, path=path, position=error.position) from error


def _read_block(block: Block, fields: list[_Field], known: frozenset[str]) -> Iterator[_Record]:
    at = 0
    try:
        for _ in range(block.entries):
            record, at = _read(block.data, at, fields, known)
            yield record
    except (IndexError, StructError):
        raise Malformed("An entry is cut off", position=block.position) from None
    if at != len(block.data):
        raise Malformed("A block has bytes after its last entry", position=block.position)


def _read(data: bytes, at: int, fields: list[_Field], known: frozenset[str]) -> tuple[_Record, int]:
    spans, values = [], {}
    for field in fields:
        start = at
        value, at = field.read(data, at)
        spans.append((start, at))
        if field.name in known:
            values[field.name] = value
    return _Record(data, spans, values), at


def _splice(record: _Record, fields: list[_Field], changed: Mapping[int, Any]) -> bytes:
    out = bytearray()
    for at, (start, end) in enumerate(record.spans):
        if at in changed:
            _write_value(out, fields[at].type, changed[at])
        else:
            out += record.data[start:end]
    return bytes(out)


def _write_value(out: bytearray, node: Node, value: Any) -> None:
    if isinstance(node, Union):
        index = next(
            at for at, branch in enumerate(node.branches) if (branch == Plain("null")) == (value is None)
        )
        write_long(out, index)
        node = node.branches[index]
    if isinstance(value, dict):
        at_key = _key_place(node)
        value = [(key, each) if at_key == 0 else (each, key) for key, each in value.items()]
    _writer_of(node)(out, value)


_writer_of = cache(make_writer)


def _write(container: Container, records: Iterable[bytes]) -> bytes:
    codec = container.codec if container.codec in WRITABLE else "deflate"
    return write_encoded(container.schema_json, records, properties=container.properties, codec=codec)
