"""Kinds and states of delegated tasks, in every spelling that is understood.

Apache Polaris' proposal of a delegation service spells some of them in several ways. All of them are read;
one is written.

A maintainer must not break: no alias means two things, and what nobody knows is refused, never guessed.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cynosure.common.errors import BadInput


class TaskType(StrEnum):
    """What is to be done."""

    TABLE_PURGE = "TABLE_PURGE"
    SNAPSHOT_EXPIRY = "SNAPSHOT_EXPIRY"
    DATA_COMPACTION = "DATA_COMPACTION"
    ORPHAN_FILE_REMOVAL = "ORPHAN_FILE_REMOVAL"
    METADATA_COMPACTION = "METADATA_COMPACTION"
    FORMAT_CONVERSION = "FORMAT_CONVERSION"


class TaskStatus(StrEnum):
    """How far it is."""

    SUBMITTED = "SUBMITTED"
    ACQUIRING_RESOURCES = "ACQUIRING_RESOURCES"
    RUNNING = "RUNNING"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing more happens by itself."""
        return self in (TaskStatus.SUCCESS, TaskStatus.FAILURE)

    @property
    def is_leased(self) -> bool:
        """Whether a worker has it."""
        return self in (TaskStatus.ACQUIRING_RESOURCES, TaskStatus.RUNNING)


TYPE_ALIASES: Final[Mapping[str, TaskType]] = MappingProxyType(
    {
        **{each.value: each for each in TaskType},
        "SYNCHRONOUS_TABLE_PURGE": TaskType.TABLE_PURGE,
        "PURGE_TABLE": TaskType.TABLE_PURGE,
        "DATA_FILE_PURGE": TaskType.TABLE_PURGE,
        "EXPIRE_SNAPSHOTS": TaskType.SNAPSHOT_EXPIRY,
        "TABLE_COMPACTION": TaskType.DATA_COMPACTION,
        "COMPACTION": TaskType.DATA_COMPACTION,
        "REMOVE_ORPHAN_FILES": TaskType.ORPHAN_FILE_REMOVAL,
        "REWRITE_MANIFESTS": TaskType.METADATA_COMPACTION,
        "CONVERT_FORMAT": TaskType.FORMAT_CONVERSION,
    }
)
STATUS_ALIASES: Final[Mapping[str, TaskStatus]] = MappingProxyType(
    {
        **{each.value: each for each in TaskStatus},
        "QUEUED": TaskStatus.SUBMITTED,
        "CREATED": TaskStatus.SUBMITTED,
        "ACQUIRING_LEASE": TaskStatus.ACQUIRING_RESOURCES,
        "PROCESSING": TaskStatus.RUNNING,
        "COMPLETED_SUCCESS": TaskStatus.SUCCESS,
        "FAILED_TERMINAL": TaskStatus.FAILURE,
    }
)

QUEUED: Final = "QUEUED"
COMPLETED_SUCCESS: Final = "COMPLETED_SUCCESS"
FAILED_TERMINAL: Final = "FAILED_TERMINAL"
"""How answers to who submits a task name its state; records of tasks name it as `TaskStatus` does."""


def parse_task_type(text: str, *, field: str = "common_payload.operation_type") -> TaskType:
    """The kind of this name, in any spelling; `BadInput` when nobody knows it."""
    found = TYPE_ALIASES.get(text.strip().upper())
    if found is None:
        raise BadInput(
            "There is no such kind of tasks",
            field=field,
            fix=f"Choose one of {', '.join(TaskType)}.",
            value=text[:100],
        )
    return found


def parse_status(text: str, *, field: str = "status") -> TaskStatus:
    """The state of this name, in any spelling; `BadInput` when nobody knows it."""
    found = STATUS_ALIASES.get(text.strip().upper())
    if found is None:
        raise BadInput(
            "There is no such state of tasks",
            field=field,
            fix=f"Choose one of {', '.join(TaskStatus)}.",
            value=text[:100],
        )
    return found
