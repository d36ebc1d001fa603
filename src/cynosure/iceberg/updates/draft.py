"""A table's metadata while the updates of one request change it.

A maintainer must not break: values taken from the base are shared with it. Replace them, never change them in
place; a failed request must leave the base as it was.
"""

from cynosure.iceberg.document import Document
from cynosure.iceberg.encryption import EncryptedKey
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.fragments import EMPTY, Fragments
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.partitioning import NO_FIELD_ID, PartitionSpec
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.snapshots import Snapshot, SnapshotRef
from cynosure.iceberg.sorting import SortOrder

LAST_ADDED = -1
"""The id that stands for what this request added last."""


class Draft:
    """The fields of `TableMetadata`, changeable, plus what has happened in this request."""

    __slots__ = (
        "added_snapshots",
        "base",
        "current_schema_id",
        "current_snapshot_id",
        "default_sort_order_id",
        "default_spec_id",
        "encryption_keys",
        "format_version",
        "has_new_shape",
        "is_changed",
        "last_added_order_id",
        "last_added_schema_id",
        "last_added_spec_id",
        "last_column_id",
        "last_partition_id",
        "last_sequence_number",
        "limits",
        "location",
        "main_heads",
        "next_row_id",
        "now_ms",
        "partition_specs",
        "partition_statistics",
        "properties",
        "refs",
        "removed_snapshots",
        "schemas",
        "snapshot_log",
        "snapshots",
        "sort_orders",
        "statistics",
        "table_uuid",
        "unknown",
        "updated_ms",
    )

    def __init__(
        self, base: TableMetadata | None, *, format_version: int, now_ms: int, limits: SizeLimits
    ) -> None:
        self.base = base
        self.limits = limits
        # A clock behind the last writer's must not make the table go back in time.
        self.now_ms = now_ms if base is None else max(now_ms, base.last_updated_ms)
        self.format_version = format_version
        self.table_uuid: str | None = None
        self.location: str | None = None
        self.last_sequence_number = 0
        self.last_column_id = 0
        self.schemas: tuple[Document[Schema], ...] = ()
        self.current_schema_id: int | None = None
        self.partition_specs: tuple[Document[PartitionSpec], ...] = ()
        self.default_spec_id: int | None = None
        self.last_partition_id = NO_FIELD_ID
        self.sort_orders: tuple[Document[SortOrder], ...] = ()
        self.default_sort_order_id: int | None = None
        self.properties: dict[str, str] = {}
        self.current_snapshot_id: int | None = None
        self.snapshots: Fragments = EMPTY
        self.snapshot_log: Fragments = EMPTY
        self.refs: dict[str, Document[SnapshotRef]] = {}
        self.statistics: Fragments = EMPTY
        self.partition_statistics: Fragments = EMPTY
        self.encryption_keys: dict[str, Document[EncryptedKey]] = {}
        self.next_row_id = 0
        self.unknown: dict[str, bytes] = {}

        self.is_changed = False
        self.has_new_shape = False
        """Whether schema, spec or order changed, so that they must be checked against each other again."""
        self.updated_ms: int | None = None
        """The time of this change, once a snapshot has fixed it."""
        self.last_added_schema_id: int | None = None
        self.last_added_spec_id: int | None = None
        self.last_added_order_id: int | None = None
        self.added_snapshots: dict[int, Snapshot] = {}
        self.removed_snapshots = False
        self.main_heads: list[int] = []
        """Snapshots of this request that were the head of main at some point of it."""
        if base is not None:
            self._take(base)

    def _take(self, base: TableMetadata) -> None:
        self.table_uuid = base.table_uuid
        self.location = base.location
        self.last_sequence_number = base.last_sequence_number
        self.last_column_id = base.last_column_id
        self.schemas = base.schemas
        self.current_schema_id = base.current_schema_id
        self.partition_specs = base.partition_specs
        self.default_spec_id = base.default_spec_id
        self.last_partition_id = base.last_partition_id
        self.sort_orders = base.sort_orders
        self.default_sort_order_id = base.default_sort_order_id
        self.properties = base.properties
        self.current_snapshot_id = base.current_snapshot_id
        self.snapshots = base.snapshots
        self.snapshot_log = base.snapshot_log
        self.refs = base.refs
        self.statistics = base.statistics
        self.partition_statistics = base.partition_statistics
        self.encryption_keys = base.encryption_keys
        self.next_row_id = base.next_row_id or 0
        self.unknown = base.unknown

    def current_schema(self) -> Schema:
        """The schema that new specs and orders are bound to."""
        for one in self.schemas:
            if one.value.schema_id == self.current_schema_id:
                return one.value
        raise InvalidUpdate(
            "The table has no current schema yet",
            field="action",
            fix="Send add-schema and set-current-schema before what refers to columns.",
        )

    def change(self) -> None:
        """Note that the table is not what it was."""
        self.is_changed = True

    def change_shape(self) -> None:
        """Note that columns, partitioning or sorting changed."""
        self.is_changed = self.has_new_shape = True
