"""Random files of random tables, and PyIceberg's reader and writer on bytes in memory."""

import struct
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import Phase
from hypothesis import strategies as st
from pyiceberg.io import FileIO, InputFile, OutputFile

from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent
from cynosure.iceberg.manifests.write_manifest import ManifestKind, spec_fields_json
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec, partition_types
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import NestedField, encode_field, parse_type

SNAPSHOT = 77
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking: on files of this many parts it takes minutes, and the seed repeats the case."""
LONG = st.integers(-(2**63), 2**63 - 1)
COUNT = st.one_of(st.integers(0, 300), st.integers(0, 2**62))

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONG,
    "float": st.floats(width=32).map(lambda n: struct.unpack("<f", struct.pack("<f", n))[0]),
    "double": st.floats(),
    "date": st.integers(-(2**31), 2**31 - 1),
    "time": st.integers(0, 86_399_999_999),
    "timestamp": LONG,
    "timestamptz": LONG,
    "string": st.text(max_size=100),
    "uuid": st.uuids(),
    "binary": st.binary(max_size=100),
    "fixed[5]": st.binary(min_size=5, max_size=5),
    "decimal(9, 2)": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "decimal(38, 10)": st.integers(-(10**27), 10**27).map(lambda n: Decimal(n).scaleb(-10)),
}


class MemoryFile(InputFile, OutputFile):
    """One file in memory, for PyIceberg."""

    def __init__(self, location: str, files: dict[str, bytes]) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return len(self._files[self.location])

    def exists(self) -> bool:
        return self.location in self._files

    def open(self, seekable: bool = True) -> Any:
        return BytesIO(self._files[self.location])

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> Any:
        files, location = self._files, self.location

        class Out(BytesIO):
            def close(self) -> None:
                files[location] = self.getvalue()
                super().close()

        return Out()


class MemoryFiles(FileIO):
    """Files in memory, for PyIceberg."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        super().__init__()
        self.files = {} if files is None else files

    def new_input(self, location: str) -> InputFile:
        return MemoryFile(location, self.files)

    def new_output(self, location: str) -> OutputFile:
        return MemoryFile(location, self.files)

    def delete(self, location: Any) -> None:
        del self.files[location]


def make_schema(names: list[str]) -> Schema:
    fields = [NestedField(at, f"c{at}", parse_type(name), False) for at, name in enumerate(names, 1)]
    return Schema(0, tuple(fields))


def schema_json(schema: Schema) -> bytes:
    fields = [encode_field(field) for field in schema.fields]
    return msgspec.json.encode({"type": "struct", "schema-id": 0, "fields": fields})


def make_kind(
    names: list[str], *, version: int = 2, content: ManifestContent = ManifestContent.DATA
) -> ManifestKind:
    """Partitioned by every column of these types."""
    schema = make_schema(names)
    fields = [
        PartitionField(f"p {at}" if at % 2 else f"p{at}", "identity", source_id=at, field_id=999 + at)
        for at in range(1, len(names) + 1)
    ]
    spec = PartitionSpec(tuple(fields), spec_id=3)
    return ManifestKind(
        format_version=version,
        spec=spec,
        partition_types=partition_types(spec, schema),
        spec_json=spec_fields_json(spec),
        schema_json=schema_json(schema),
        schema_id=0,
        content=content,
    )


def long_bound(number: int) -> bytes:
    return struct.pack("<q", number)


@st.composite
def metrics(draw: Any, values: st.SearchStrategy[Any]) -> dict[int, Any] | None:
    # Now and then another shape, a large id, or no metrics at all.
    ids = draw(st.sampled_from([(1, 2, 3), (1, 2, 3), (1, 3), (2_000_000_000,), ()]))
    return {id_: draw(values) for id_ in ids} or None


@st.composite
def files(draw: Any, names: list[str], *, version: int = 2, content: Content = Content.DATA) -> ContentFile:
    is_data = content is Content.DATA
    offsets = draw(st.none() | st.lists(st.integers(0, 2**40), max_size=5).map(tuple))
    bounds = st.binary(max_size=20) | st.binary(min_size=60, max_size=70)
    more: dict[str, Any] = {}
    if version > 1 and content is Content.POSITION_DELETES:
        more["referenced_data_file"] = draw(st.none() | st.text(min_size=1, max_size=20))
    if version > 2 and content is Content.POSITION_DELETES:
        more |= {"content_offset": draw(COUNT), "content_size_bytes": draw(COUNT)}
    if content is Content.EQUALITY_DELETES:
        more["equality_ids"] = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
    if version > 2 and is_data:
        more["first_row_id"] = draw(st.none() | st.integers(0, 2**40))
    return ContentFile(
        path="s3://bucket/table/data/" + draw(st.text(min_size=1, max_size=150)),
        format=draw(st.sampled_from(["parquet", "parquet", "orc", "avro"])),
        spec_id=3,
        partition=tuple(draw(st.none() | VALUES[name]) for name in names),
        record_count=draw(st.integers(0, 2**40)),
        file_size_bytes=draw(COUNT),
        content=content,
        column_sizes=draw(metrics(COUNT)),
        value_counts=draw(metrics(COUNT)),
        null_value_counts=draw(metrics(st.integers(0, 3))),
        nan_value_counts=draw(metrics(COUNT)),
        lower_bounds=draw(metrics(bounds)),
        upper_bounds=draw(metrics(bounds)),
        key_metadata=draw(st.none() | st.binary(max_size=5)),
        split_offsets=offsets,
        sort_order_id=draw(st.none() | st.integers(0, 3)),
        **more,
    )


@st.composite
def entries(draw: Any, names: list[str], *, version: int = 2, content: Content = Content.DATA) -> Entry:
    status = draw(st.sampled_from(Status))
    sequence = draw(st.integers(0, 9))
    if version == 1:
        sequence_number = None
    elif status is Status.ADDED:
        sequence_number = draw(st.none() | st.just(sequence))
    else:
        sequence_number = sequence
    return Entry(
        status,
        SNAPSHOT if status is Status.ADDED else draw(st.integers(1, 99)),
        sequence_number,
        sequence_number,
        draw(files(names, version=version, content=content)),
    )


TYPES = st.lists(st.sampled_from(sorted(VALUES)), max_size=4)


def plain(value: Any) -> Any:
    """For comparisons: NaN equals NaN, and both zeros differ."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(one) for one in value)
    if isinstance(value, UUID):
        return value.bytes
    return value
