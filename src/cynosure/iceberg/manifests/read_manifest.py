"""A manifest from the bytes of its file.

Fields are found by Iceberg's ids, in whatever order and under whatever names a writer put them; unknown ones
are read over. What a file leaves to the manifest list (snapshot ids, sequence numbers, first row ids) is
taken from there at once, so nobody after this has to know about inheritance.

Entries are read in two ways with one result: by a pattern that fits most of them (`entry_pattern.py`), and
step by step. Every few thousand files, what was read is packed.

A maintainer must not break: a file that is not exactly what it says is refused with its path and position.
Reading on after damage would plan a table with rows missing.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from struct import error as StructError
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.avro.container import Block, Container, ReadLimits, read_container
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.columns import Column, Constant
from cynosure.iceberg.manifests.content_file import Content, Status
from cynosure.iceberg.manifests.entry_fields import NOT_NEGATIVE, REQUIRED
from cynosure.iceberg.manifests.entry_reading import LEAST_FILES, EntryReading
from cynosure.iceberg.manifests.manifest import Manifest, PartitionField, Partitions
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.packing import pack_coded, pack_ints, pack_text
from cynosure.iceberg.types import DecimalType, FixedType, Type

_CLASSES: Final[Mapping[str, type[Any]]] = {
    "boolean": bool,
    "float": float,
    "double": float,
    "string": str,
    "uuid": UUID,
    "binary": bytes,
}


def read_manifest(
    data: bytes,
    listed: ManifestFile,
    *,
    partition: Sequence[tuple[int, Type | None]] | None = None,
    limits: ReadLimits | None = None,
) -> Manifest:
    """The files of a manifest as its snapshot sees them. `listed` is its line in the manifest list.

    `partition` are the ids and types of the spec's fields, a type being None where the column is gone.
    Partition values then come in this order and are of these types; without it, as the file has them.

    Raises `InvalidManifest` for anything but a whole and valid manifest.
    """
    try:
        container = read_container(data)
        reading = EntryReading(container.schema)
        blocks = container.blocks(limits or ReadLimits())
        first: list[Block] = []
        seen = 0
        for block in islice(blocks, LEAST_FILES):
            first.append(block)
            seen += block.entries
            if seen >= LEAST_FILES:
                break
        reading.learn([(one.data, one.entries) for one in first], max(seen, _promised(listed)))
        for block in chain(first, blocks):
            _read_block(reading, block)
        manifest = _make_manifest(reading, container, listed)
        return manifest if partition is None else _arrange(manifest, partition)
    except Malformed as error:
        raise InvalidManifest(error.message, path=listed.path, position=error.position) from error


def read_spec_id(data: bytes, *, path: str) -> int:
    """The partition spec that a manifest names itself, for one that no list names."""
    try:
        text = read_container(data).properties.get("partition-spec-id", b"0")
    except Malformed as error:
        raise InvalidManifest(error.message, path=path, position=error.position) from error
    if not text.isdigit() or len(text) > 9:
        raise InvalidManifest("The manifest has no valid partition-spec-id", path=path)
    return int(text)


def _read_block(reading: EntryReading, block: Block) -> None:
    start = reading.count
    try:
        end = reading.read(block.data, block.entries)
    except (IndexError, StructError):
        message = "An entry is cut off"
    except Malformed as error:
        message = error.message
    else:
        if end == len(block.data):
            return
        message = "A block has bytes after its last entry"
    raise Malformed(f"{message} (entry {reading.count - start} of the block)", position=block.position)


def _make_manifest(reading: EntryReading, container: Container, listed: ManifestFile) -> Manifest:
    columns, metrics, partitions = reading.finish()
    if reading.count < _promised(listed):
        # A file that was cut off between two blocks looks whole; only the list knows better.
        raise Malformed("The manifest has fewer entries than its list says")
    for name in REQUIRED:
        if reading.count and None in columns[name]:
            raise Malformed(f"An entry has no {name}")
    for name in NOT_NEGATIVE:
        if _has_below_zero(columns[name]):
            raise Malformed(f"An entry has a negative {name}")
    statuses: Column[int] = columns["status"]
    if not {*statuses} <= {*Status}:
        raise Malformed("An entry has an unknown status")
    contents = _or_data(columns["content"])
    found = {*contents}
    if not found <= {*Content}:
        raise Malformed("A file has unknown content")
    if Content.DATA in found and len(found) > 1:
        raise Malformed("The manifest mixes data files and delete files")
    is_deletes = Content.DATA not in found if found else listed.content is ManifestContent.DELETES
    records: Column[int] = columns["record_count"]
    try:
        texts = {
            name: pack_text([*columns[name]]) for name in ("file_path", "file_format", "referenced_data_file")
        }
    except UnicodeDecodeError:
        raise Malformed("A text is not UTF-8") from None
    return Manifest(
        path=listed.path,
        format_version=_read_version(container),
        spec_id=listed.spec_id,
        count=reading.count,
        is_deletes=is_deletes,
        statuses=statuses,
        snapshot_ids=_inherit(columns["snapshot_id"], listed.added_snapshot_id),
        sequence_numbers=_inherit_number(columns["sequence_number"], statuses, listed, is_needed=True),
        file_sequence_numbers=_inherit_number(
            columns["file_sequence_number"], statuses, listed, is_needed=False
        ),
        contents=contents,
        paths=texts["file_path"],
        formats=pack_coded([one.lower() for one in texts["file_format"] if one is not None]),
        partitions=partitions,
        partition_numbers=columns["partition"],
        record_counts=records,
        file_sizes=columns["file_size_in_bytes"],
        key_metadata=columns["key_metadata"],
        split_offsets=columns["split_offsets"],
        equality_ids=columns["equality_ids"],
        sort_order_ids=columns["sort_order_id"],
        first_row_ids=_first_row_ids(
            columns["first_row_id"], statuses, records, None if is_deletes else listed.first_row_id
        ),
        referenced_data_files=texts["referenced_data_file"],
        content_offsets=columns["content_offset"],
        content_sizes=columns["content_size_in_bytes"],
        **metrics,
    )


def _arrange(manifest: Manifest, wanted: Sequence[tuple[int, Type | None]]) -> Manifest:
    found = manifest.partitions
    by_id = {field.id: (field, values) for field, values in zip(found.fields, found.values, strict=False)}
    nothing: Column[Any] = Constant(None, found.count)
    pairs = [by_id.get(id_, (PartitionField(id_, ""), nothing)) for id_, _ in wanted]
    for (_, type_), (field, values) in zip(wanted, pairs, strict=True):
        kind = _value_class(type_)
        if kind is not None and any(value is not None and type(value) is not kind for value in values):
            raise Malformed(f"A partition value is not of the type of its field (field {field.id})")
    if [field.id for field in found.fields] == [id_ for id_, _ in wanted]:
        return manifest
    partitions = Partitions(
        tuple(field for field, _ in pairs), tuple(values for _, values in pairs), found.count
    )
    return replace(manifest, partitions=partitions)


def _value_class(type_: Type | None) -> type[Any] | None:
    """How values of a type are held; None when it does not matter."""
    if isinstance(type_, DecimalType):
        return Decimal
    if isinstance(type_, FixedType):
        return bytes
    return None if type_ is None else _CLASSES.get(str(type_), int)


def _promised(listed: ManifestFile) -> int:
    """How many entries the manifest list says there are."""
    return sum(one or 0 for one in (listed.added_files, listed.existing_files, listed.deleted_files))


def _has_below_zero(column: Column[int]) -> bool:
    return any(value is not None and value < 0 for value in _once(column))


def _once(column: Column[int]) -> Sequence[int | None] | Column[int]:
    return [column.value] if isinstance(column, Constant) else column


def _or_data(column: Column[int]) -> Column[int]:
    if isinstance(column, Constant) and column.value is not None:
        return column
    return pack_ints([Content.DATA if one is None else one for one in column])


# Inheritance.


def _inherit(column: Column[int], given: int | None) -> Column[int]:
    if None not in _once(column):
        return column
    return pack_ints([given if one is None else one for one in column])


def _inherit_number(
    column: Column[int], statuses: Column[int], listed: ManifestFile, *, is_needed: bool
) -> Column[int]:
    if None not in _once(column):
        return column
    given = listed.sequence_number
    numbers = [
        given if one is None and (status == Status.ADDED or given == 0) else one
        for one, status in zip(column, statuses, strict=True)
    ]
    if is_needed and None in numbers:
        for number, status in zip(numbers, statuses, strict=True):
            if number is None and status != Status.DELETED:
                raise Malformed("A file that an earlier snapshot added has no sequence number")
    return pack_ints(numbers)


def _first_row_ids(
    column: Column[int], statuses: Column[int], records: Column[int], next_id: int | None
) -> Column[int]:
    if next_id is None:
        # Without one for the manifest, the numbers of its files mean nothing.
        return Constant(None, len(column))
    assigned: list[int | None] = []
    for given, status, count in zip(column, statuses, records, strict=True):
        if given is None and status != Status.DELETED:
            assigned.append(next_id)
            next_id += count or 0
        else:
            assigned.append(given)
    if next_id >= 2**63:
        raise Malformed("The first row ids of the manifest are too large")
    return pack_ints(assigned)


def _read_version(container: Container) -> int:
    text = container.properties.get("format-version", b"1")
    if text not in (b"1", b"2", b"3"):
        raise Malformed("The manifest has a format version that this server does not know")
    return int(text)
