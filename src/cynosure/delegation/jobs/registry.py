"""All jobs, by the kind of task they do.

Must not break: a job is imported when jobs are opened, not before, so that a catalog that only purges loads
nothing of the others.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final, cast

from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.port import Job

_HERE: Final = "cynosure.delegation.jobs"
JOBS: Final[Mapping[TaskType, str]] = MappingProxyType(
    {
        TaskType.TABLE_PURGE: f"{_HERE}.purge.job:PurgeJob",
        TaskType.SNAPSHOT_EXPIRY: f"{_HERE}.expiry.job:ExpiryJob",
        TaskType.DATA_COMPACTION: f"{_HERE}.compaction.job:CompactionJob",
        TaskType.ORPHAN_FILE_REMOVAL: f"{_HERE}.orphans.job:OrphanRemovalJob",
        TaskType.METADATA_COMPACTION: f"{_HERE}.metadata_compaction.job:MetadataCompactionJob",
        TaskType.FORMAT_CONVERSION: f"{_HERE}.conversion.job:ConversionJob",
    }
)
"""Module and class of each."""


def open_jobs(kinds: Iterable[TaskType] = tuple(TaskType)) -> dict[TaskType, Job]:
    """The jobs of these kinds."""
    return {kind: _open(JOBS[kind]) for kind in kinds}


def _open(place: str) -> Job:
    module, _, name = place.partition(":")
    return cast(Job, getattr(import_module(module), name)())
