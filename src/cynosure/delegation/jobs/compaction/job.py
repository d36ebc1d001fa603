"""DATA_COMPACTION, in the worker: the instructions, and what was counted.

A maintainer must not break: instructions become options of Iceberg's procedure under their own names; none is
passed on that is not known here.
"""

from typing import Any, Final

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.compaction.where import find_sort_order, find_where
from cynosure.delegation.jobs.instructions import Instructions
from cynosure.delegation.jobs.on_table import run_on_spark
from cynosure.delegation.jobs.port import JobContext

_STRATEGIES: Final = {"binpack": "binpack", "bin-pack": "binpack", "bin_pack": "binpack", "sort": "sort"}
_WHOLE: Final = {
    "target_file_size_bytes": "target-file-size-bytes",
    "min_input_files": "min-input-files",
    "min_file_size_bytes": "min-file-size-bytes",
    "max_file_size_bytes": "max-file-size-bytes",
    "max_file_group_size_bytes": "max-file-group-size-bytes",
    "max_concurrent_file_group_rewrites": "max-concurrent-file-group-rewrites",
    "delete_file_threshold": "delete-file-threshold",
    "max_commits": "partial-progress.max-commits",
    "partial_progress_max_commits": "partial-progress.max-commits",
}
"""Instruction → option of Iceberg."""
_KNOWN: Final = (
    *_WHOLE,
    "compaction_strategy",
    "sort_order",
    "where",
    "spec_id",
    "rewrite_all",
    "partial_progress_enabled",
    "remove_dangling_deletes",
)


class CompactionJob:
    """Rewrites the data files of a table."""

    task_type: Final = TaskType.DATA_COMPACTION

    def check(self, order: TaskOrder) -> None:
        """Refuse instructions that cannot be followed."""
        _read(order)

    async def run(self, context: JobContext) -> ExecutionResult:
        """Compact."""
        return ExecutionResult(details=await run_on_spark(context, "compaction", _read(context.order)))


def _read(order: TaskOrder) -> dict[str, Any]:
    given = Instructions(order.properties, _KNOWN)
    strategy = given.find_choice("compaction_strategy", _STRATEGIES)
    sort_order = find_sort_order(given)
    if sort_order is not None and strategy == "binpack":
        raise BadInput(
            "A sort order does not go with bin-packing",
            field="operation_parameters.properties.sort_order",
            fix="Leave it out, or choose compaction_strategy sort.",
        )
    options = {
        option: str(value)
        for name, option in _WHOLE.items()
        if (value := given.find_whole(name, least=0 if name == "delete_file_threshold" else 1)) is not None
    }
    spec_id = given.find_whole("spec_id")
    if spec_id is not None:
        options["output-spec-id"] = str(spec_id)
    if given.find_flag("rewrite_all", default=False):
        options["rewrite-all"] = "true"
    if "max-concurrent-file-group-rewrites" not in options:
        # One after the other by default: other tasks share the session.
        options["max-concurrent-file-group-rewrites"] = "2"
    options["partial-progress.enabled"] = str(
        given.find_flag("partial_progress_enabled", default=True)
    ).lower()
    return {
        "strategy": "sort" if sort_order is not None else strategy or "binpack",
        "sort_order": sort_order,
        "where": find_where(given),
        "options": options,
        "removes_dangling": given.find_flag("remove_dangling_deletes", default=True),
    }
