"""Rules that hold for a table's metadata as a whole, wherever it came from."""

from typing import Final

from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.partitioning import check_sources
from cynosure.iceberg.snapshots import decode_snapshot_log_entry
from cynosure.iceberg.sorting import check_order

CLOCK_TOLERANCE_MS: Final = 60_000
"""Commits come from machines whose clocks differ; time may seem to go back this far."""


def check_default_ids(metadata: TableMetadata) -> None:
    """Refuse metadata whose current schema, spec or order is missing, or do not fit each other."""
    for name, wanted, present in (
        ("current-schema-id", metadata.current_schema_id, [one.value.schema_id for one in metadata.schemas]),
        (
            "default-spec-id",
            metadata.default_spec_id,
            [one.value.spec_id for one in metadata.partition_specs],
        ),
        (
            "default-sort-order-id",
            metadata.default_sort_order_id,
            [one.value.order_id for one in metadata.sort_orders],
        ),
    ):
        if wanted not in present:
            raise InvalidMetadata(
                "The id names nothing in the list", field=name, fix="Name one of the list.", id=wanted
            )
        if len({*present}) != len(present):
            raise InvalidMetadata("An id is used twice in the list", field=name, fix="Number them uniquely.")
    schema = metadata.current_schema()
    check_sources(metadata.default_spec(), schema, field="partition-specs")
    check_order(metadata.default_sort_order(), schema, field="sort-orders")


def check_clocks(metadata: TableMetadata) -> None:
    """Refuse logs that run backwards, beyond what clocks differ."""
    logs = (
        ("snapshot-log", (decode_snapshot_log_entry(json).timestamp_ms for _, json in metadata.snapshot_log)),
        # Its keys are the times of its entries.
        ("metadata-log", metadata.metadata_log.keys()),
    )
    for name, times in logs:
        before: int | None = None
        for at, time in enumerate(times):
            if before is not None and time < before - CLOCK_TOLERANCE_MS:
                raise InvalidMetadata(
                    "The log is not in order of time", field=f"{name}[{at}].timestamp-ms", fix="Sort it."
                )
            before = time
        if before is not None and metadata.last_updated_ms < before - CLOCK_TOLERANCE_MS:
            raise InvalidMetadata(
                "The last update is before the last entry of a log",
                field="last-updated-ms",
                fix="Set it to the time of the last update.",
                last_updated_ms=metadata.last_updated_ms,
                log=name,
                log_ms=before,
            )
