"""A table of many files in memory: its manifests as bytes, ours and as PyIceberg's table.

A maintainer must not break: manifests look as Spark writes them: blocks of 64 kB, all metrics of ten columns,
a partition of day and region, paths of usual length.
"""

import random
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

import msgspec

from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.content_file_json import JsonTypes
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import (
    ManifestKind,
    spec_fields_json,
    write_manifest,
    write_manifest_list,
)
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec, partition_types
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import NestedField, encode_field, parse_type

COLUMNS: Final = (
    *("long", "long", "timestamp", "int", "double"),
    *("string", "string", "long", "date", "long"),
)
SNAPSHOT: Final = 77
DAY_US: Final = 86_400_000_000
DAYS: Final = 365
FIRST_DAY: Final = 20_000
LIST: Final = "memory://table/list.avro"


class ManifestTable:
    """The manifests of one snapshot."""

    def __init__(self, files: int, per_manifest: int) -> None:
        fields = [NestedField(at, f"c{at}", parse_type(name), False) for at, name in enumerate(COLUMNS, 1)]
        self.schema = Schema(0, tuple(fields))
        self.spec = PartitionSpec(
            (
                PartitionField("day", "day", source_id=3, field_id=1000),
                PartitionField("region", "identity", source_id=6, field_id=1001),
            )
        )
        self.types = partition_types(self.spec, self.schema)
        self.json_types = JsonTypes({0: self.types}, self.schema.find_type)
        self.schema_json = msgspec.json.encode(
            {"type": "struct", "schema-id": 0, "fields": [encode_field(field) for field in fields]}
        )
        kind = ManifestKind(
            format_version=2,
            spec=self.spec,
            partition_types=self.types,
            spec_json=spec_fields_json(self.spec),
            schema_json=self.schema_json,
            schema_id=0,
        )
        self.contents: dict[str, bytes] = {}
        listed: list[ManifestFile] = []
        for number in range(max(1, files // per_manifest)):
            path = f"memory://table/m{number}.avro"
            data, one = write_manifest(kind, _entries(number, per_manifest), path=path, snapshot_id=SNAPSHOT)
            self.contents[path] = data
            listed.append(one)
        self.contents[LIST], self.listed, _ = write_manifest_list(
            listed, format_version=2, snapshot_id=SNAPSHOT, parent_snapshot_id=None, sequence_number=1
        )

    @property
    def files(self) -> int:
        """How many files the table has."""
        return sum(one.added_files or 0 for one in self.listed)

    def read(self) -> list[Manifest]:
        """All manifests, decoded."""
        return [read_manifest(self.contents[one.path], one) for one in self.listed]

    def as_pyiceberg(self) -> Any:
        """The same table for PyIceberg."""
        from pyiceberg.io import FileIO, InputFile
        from pyiceberg.partitioning import PartitionSpec as TheirSpec
        from pyiceberg.schema import Schema as TheirSchema
        from pyiceberg.table import Table
        from pyiceberg.table.metadata import new_table_metadata
        from pyiceberg.table.snapshots import Operation, Snapshot, Summary
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

        contents = self.contents

        class InMemory(InputFile):
            def __len__(self) -> int:
                return len(contents[self.location])

            def exists(self) -> bool:
                return self.location in contents

            def open(self, seekable: bool = True) -> Any:
                return BytesIO(contents[self.location])

        class Memory(FileIO):
            def new_input(self, location: str) -> InputFile:
                return InMemory(location)

            def new_output(self, location: str) -> Any:
                raise NotImplementedError

            def delete(self, location: Any) -> None:
                raise NotImplementedError

        metadata = new_table_metadata(
            schema=TheirSchema.model_validate_json(self.schema_json),
            partition_spec=TheirSpec.model_validate(
                {"spec-id": 0, "fields": msgspec.json.decode(spec_fields_json(self.spec))}
            ),
            sort_order=UNSORTED_SORT_ORDER,
            location="memory://table",
        )
        snapshot = Snapshot.model_validate(
            {
                "snapshot-id": SNAPSHOT,
                "sequence-number": 1,
                "timestamp-ms": 1,
                "manifest-list": LIST,
                "summary": Summary(Operation.APPEND),
                "schema-id": 0,
            }
        )
        found = metadata.model_copy(update={"snapshots": [snapshot], "current_snapshot_id": SNAPSHOT})
        return Table(("db", "t"), found, "memory://table/metadata.json", Memory(), None)  # type: ignore[arg-type]


def _entries(number: int, count: int) -> Iterator[Entry]:
    rng = random.Random(number)
    for at in range(count):
        yield Entry(Status.ADDED, None, None, None, _make_file(rng, number, at))


def _make_file(rng: random.Random, number: int, at: int) -> ContentFile:
    records = rng.randrange(1_000, 2_000_000)
    day, region = FIRST_DAY + at % DAYS, f"eu-{at % 7}"
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for id_, name in enumerate(COLUMNS, 1):
        lower[id_], upper[id_] = _bounds(id_, name, day, region, rng)
    unique = f"{rng.getrandbits(48):012x}"
    return ContentFile(
        path=f"s3://warehouse/sales/orders/data/day={day}/region={region}/"
        f"{at:05}-{number}-9d0f1ad2-7c1c-4b3e-9d00-{unique}-00001.parquet",
        format="parquet",
        spec_id=0,
        partition=(day, region),
        record_count=records,
        file_size_bytes=rng.randrange(10**6, 10**9),
        column_sizes={id_: rng.randrange(10**3, 10**7) for id_ in lower},
        value_counts=dict.fromkeys(lower, records),
        null_value_counts={id_: rng.randrange(100) if id_ == 7 else 0 for id_ in lower},
        nan_value_counts={5: 0},
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=(4, 4 + rng.randrange(10**6)),
        sort_order_id=0,
    )


def _bounds(id_: int, name: str, day: int, region: str, rng: random.Random) -> tuple[bytes, bytes]:
    match name:
        case "string":
            text = region if id_ == 6 else f"customer{rng.randrange(10**8):08}"
            return text.encode(), (text if id_ == 6 else f"{text}z").encode()
        case "int" | "date":
            low = rng.randrange(10**6)
            return struct.pack("<i", low), struct.pack("<i", low + 1000)
        case "double":
            return struct.pack("<d", rng.random()), struct.pack("<d", 1 + rng.random())
        case "timestamp":
            return struct.pack("<q", day * DAY_US), struct.pack("<q", (day + 1) * DAY_US - 1)
    low = rng.randrange(10**9)
    return struct.pack("<q", low), struct.pack("<q", low + 10**6)
