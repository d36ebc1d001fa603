"""METADATA_COMPACTION, in the worker: the instructions, and what was counted."""

from typing import Any, Final

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.instructions import Instructions
from cynosure.delegation.jobs.on_table import run_on_spark
from cynosure.delegation.jobs.port import JobContext

_KNOWN: Final = ("spec_id",)


class MetadataCompactionJob:
    """Rewrites the manifests of a table."""

    task_type: Final = TaskType.METADATA_COMPACTION

    def check(self, order: TaskOrder) -> None:
        """Refuse instructions that cannot be followed."""
        _read(order)

    async def run(self, context: JobContext) -> ExecutionResult:
        """Rewrite."""
        return ExecutionResult(
            details=await run_on_spark(context, "metadata-compaction", _read(context.order))
        )


def _read(order: TaskOrder) -> dict[str, Any]:
    return {"spec_id": Instructions(order.properties, _KNOWN).find_whole("spec_id")}
