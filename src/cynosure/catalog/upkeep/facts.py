"""What is read of a table to know whether a task is worth it: as little as its kind needs.

A maintainer must not break: files of a table are read only when the answer depends on them, and the numbers
that a decision rests on are in its text.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.table_statistics import StatisticsOf, table_statistics
from cynosure.catalog.upkeep.rules import Rule
from cynosure.catalog.upkeep.survey import Surveyed
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.iceberg.retention import MAX_REF_AGE, MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS, retained_snapshots
from cynosure.persistence.commit import State

_DAY_MS: Final = 86_400_000


class Weighed(Struct, frozen=True):
    """Whether a task is worth it, and by which numbers."""

    is_worth: bool
    text: str
    numbers: dict[str, int | float]


async def load_surveyed(
    catalog: OpenCatalog, caller: Caller, state: State, surveyed: Surveyed
) -> ManagedTable:
    """The table itself; one of which only the file is known is read first."""
    if surveyed.ref.type == POINTER.name:
        return await import_pointer(catalog, caller, surveyed.path)
    return await load_table_at(state, surveyed.ref.id, catalog.shared.tables)


async def weigh(
    catalog: OpenCatalog, caller: Caller, rule: Rule, surveyed: Surveyed, table: ManagedTable
) -> Weighed:
    """Whether this task is worth it for this table, now."""
    match rule.task_type:
        case TaskType.DATA_COMPACTION:
            return await _weigh_files(catalog, caller, rule, surveyed, table)
        case TaskType.METADATA_COMPACTION:
            return await _weigh_manifests(catalog, rule, table)
        case TaskType.SNAPSHOT_EXPIRY:
            return _weigh_snapshots(rule, table, catalog.shared.persistence.clock.now_us() // 1000)
        case _:
            return Weighed(is_worth=True, text="by schedule", numbers={})


async def _weigh_files(
    catalog: OpenCatalog, caller: Caller, rule: Rule, surveyed: Surveyed, table: ManagedTable
) -> Weighed:
    if table.metadata.current_snapshot_id is None:
        return Weighed(is_worth=False, text="the table has no snapshot", numbers={})
    counted = await table_statistics(catalog, caller, surveyed.path, StatisticsOf(partitions=0))
    small, files = counted.small_files, counted.data.files
    with_deletes = counted.deletes.files_with_deletes / files if files else 0.0
    wanted_files = rule.number("min_input_files") or 1
    wanted_small = rule.number("small_file_ratio") or 0.0
    wanted_deletes = rule.number("delete_file_ratio") or 0.0
    is_small = small.files >= wanted_files and small.ratio >= wanted_small
    is_deleted = counted.deletes.files_with_deletes > 0 and with_deletes >= wanted_deletes
    text = (
        f"{small.files} of {files} files are small (from {wanted_files:.0f} and {wanted_small:.0%} on), "
        f"{counted.deletes.files_with_deletes} have deletes (from {wanted_deletes:.0%} on)"
    )
    numbers: dict[str, int | float] = {
        "files": files,
        "small-files": small.files,
        "small-file-ratio": small.ratio,
        "files-with-deletes": counted.deletes.files_with_deletes,
        "delete-file-ratio": round(with_deletes, 6),
        "bytes": counted.data.bytes,
    }
    return Weighed(is_small or is_deleted, text, numbers)


async def _weigh_manifests(catalog: OpenCatalog, rule: Rule, table: ManagedTable) -> Weighed:
    snapshot = table.metadata.find_current_snapshot()
    if snapshot is None:
        return Weighed(is_worth=False, text="the table has no snapshot", numbers={})
    manifests = len(await TableFiles(catalog, table).list_manifests(snapshot))
    wanted = rule.number("min_manifests") or 1
    text = f"{manifests} manifests (from {wanted:.0f} on)"
    return Weighed(manifests >= wanted, text, {"manifests": manifests})


def _weigh_snapshots(rule: Rule, table: ManagedTable, now_ms: int) -> Weighed:
    """By the rules of the table itself, with what the policy says in place of the table's own settings."""
    properties = dict(table.metadata.properties)
    for key, name, unit in (
        ("max_snapshot_age_days", MAX_SNAPSHOT_AGE, _DAY_MS),
        ("min_snapshot_to_keep", MIN_SNAPSHOTS, 1),
        ("max_ref_age_days", MAX_REF_AGE, _DAY_MS),
    ):
        number = rule.number(key)
        if number is not None:
            properties[name] = str(int(number * unit))
    kept = retained_snapshots(replace(table.metadata, properties=properties), now_ms)
    snapshots, expired = len(table.metadata.snapshots), len(kept.expired_snapshot_ids)
    text = f"{expired} of {snapshots} snapshots are old enough to go"
    return Weighed(expired > 0, text, {"snapshots": snapshots, "expired-snapshots": expired})
