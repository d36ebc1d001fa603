"""DATA_COMPACTION, in the driver: Iceberg's `rewrite_data_files`, and the deletes that nothing needs then.

A maintainer must not break: rows are never lost to a writer who comes at the same time. Iceberg's commits
check what was added meanwhile; what conflicts is done again, or left for the next time.
"""

from typing import Any, Final

from cynosure.common.delegated.record import TaskProgress
from cynosure.delegation.jobs.port import JobPostponed
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.spark.table import Counted, SparkTable, compare

_ROUNDS: Final = 3
"""So often files are tried whose commits conflicted with those of others."""


def compact(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Rewrite data files; what was counted."""
    table = SparkTable(link, parameters)
    metadata = table.load_metadata()
    before = table.count()
    options = dict(parameters["options"])
    if parameters["removes_dangling"]:
        options["remove-dangling-deletes"] = "true"
    rewritten = added = rewritten_bytes = failed = 0
    for number in range(_ROUNDS):
        link.progress(TaskProgress("rewriting", number, None, "rounds"))
        done = table.call(
            "rewrite_data_files",
            strategy=parameters["strategy"],
            sort_order=parameters["sort_order"],
            where=parameters["where"],
            options=options,
        )
        rewritten += done.get("rewritten_data_files_count", 0)
        added += done.get("added_data_files_count", 0)
        rewritten_bytes += done.get("rewritten_bytes_count", 0)
        failed = done.get("failed_data_files_count", 0)
        if not failed:
            break
    if parameters["removes_dangling"]:
        _remove_dangling(table, metadata)
    after = table.count()
    if failed and not rewritten:
        raise JobPostponed(
            "Others changed all the files that were being rewritten", code="COMMIT_CONFLICT", files=failed
        )
    return {
        **compare(before, after),
        "rewritten_files": rewritten,
        "added_files": added,
        "rewritten_bytes": rewritten_bytes,
        "failed_files": failed,
    }


def _remove_dangling(table: SparkTable, metadata: dict[str, Any]) -> None:
    """Remove what is left of deletes whose data files are gone.

    Rewritten files keep the sequence number at which the rewriting began, so deletes of that very number are
    not taken for old by `remove-dangling-deletes`. Position deletes that are rewritten leave out the rows of
    files that are not there any more; and with the next commit Iceberg drops what is older than all data.
    """
    left: Counted = table.count()
    if left.position_deletes and metadata["format-version"] == 2:
        table.call("rewrite_position_delete_files", options={"rewrite-all": "true"})
