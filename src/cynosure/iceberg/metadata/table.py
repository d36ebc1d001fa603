"""A table's metadata as one immutable value.

A maintainer must not break: everything that grows with the age of a table (snapshots, logs, statistics) is
`Fragments` and stays encoded. Code on the path of a commit may look up single entries, never loop over all.
"""

from typing import Final

from msgspec import Struct

from cynosure.iceberg.document import Document
from cynosure.iceberg.encryption import EncryptedKey
from cynosure.iceberg.fragments import EMPTY, Fragments
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.snapshots import Snapshot, SnapshotRef, decode_snapshot
from cynosure.iceberg.sorting import SortOrder

MAX_FORMAT_VERSION: Final = 3
DEFAULT_FORMAT_VERSION: Final = 2
MIN_VERSION_OF_ROW_LINEAGE: Final = 3


class TableMetadata(Struct, frozen=True, kw_only=True):
    """All that Iceberg says about a table, less where it is stored."""

    format_version: int
    table_uuid: str
    location: str
    """Without a trailing slash."""
    last_sequence_number: int
    """0 in format version 1."""
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Document[Schema], ...]
    current_schema_id: int
    partition_specs: tuple[Document[PartitionSpec], ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[Document[SortOrder], ...]
    default_sort_order_id: int
    properties: dict[str, str]
    current_snapshot_id: int | None
    snapshots: Fragments
    """By snapshot id, in the order they were added."""
    snapshot_log: Fragments
    """By snapshot id, which may repeat."""
    metadata_log: Fragments
    """By timestamp, which may repeat; oldest first."""
    refs: dict[str, Document[SnapshotRef]]
    statistics: Fragments = EMPTY
    """By snapshot id."""
    partition_statistics: Fragments = EMPTY
    """By snapshot id."""
    encryption_keys: dict[str, Document[EncryptedKey]]
    next_row_id: int | None
    """None before format version 3."""
    unknown: dict[str, bytes]
    """Top-level fields that this version does not know, as JSON."""

    def current_schema(self) -> Schema:
        """The schema that new data is written with."""
        return self.current_schema_document().value

    def current_schema_document(self) -> Document[Schema]:
        """The current schema with its JSON."""
        return next(one for one in self.schemas if one.value.schema_id == self.current_schema_id)

    def default_spec(self) -> PartitionSpec:
        """The spec that new data is written with."""
        return self.default_spec_document().value

    def default_spec_document(self) -> Document[PartitionSpec]:
        """The default spec with its JSON."""
        return next(one for one in self.partition_specs if one.value.spec_id == self.default_spec_id)

    def default_sort_order(self) -> SortOrder:
        """The order that new data is written in."""
        orders = (one.value for one in self.sort_orders)
        return next(order for order in orders if order.order_id == self.default_sort_order_id)

    def find_schema(self, schema_id: int) -> Schema | None:
        """A schema by its id."""
        return next((one.value for one in self.schemas if one.value.schema_id == schema_id), None)

    def find_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot by its id."""
        json = self.snapshots.find(snapshot_id)
        return None if json is None else decode_snapshot(json)

    def find_current_snapshot(self) -> Snapshot | None:
        """The head of the main branch."""
        return None if self.current_snapshot_id is None else self.find_snapshot(self.current_snapshot_id)

    def find_ref(self, name: str) -> SnapshotRef | None:
        """A branch or tag by its name."""
        ref = self.refs.get(name)
        return None if ref is None else ref.value
