"""Bodies of the delegation service's API, in the names of the proposal.

A maintainer must not break: names and values are those of the proposal's appendix; what we add has a default.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import COMPLETED_SUCCESS, FAILED_TERMINAL

BASE: Final = "/delegation-service/api/v1"
MOST_WAITED_S: Final = 600.0
MAX_PAGE_SIZE: Final = 1000


class ExecutionSummary(Struct, frozen=True):
    """What was done."""

    files_deleted: int
    bytes_deleted: int


class TaskSuccessResponse(Struct, frozen=True):
    """A task that was waited for has ended well."""

    delegation_task_id: str
    message: str
    execution_result: ExecutionSummary
    status: Literal["COMPLETED_SUCCESS"] = COMPLETED_SUCCESS


class TaskAccepted(Struct, frozen=True):
    """A task that will be done."""

    delegation_task_id: str
    status: str
    """`QUEUED` of a new one; of one that was there already, how far it is."""
    status_query_url: str


class ErrorResponse(Struct, frozen=True, omit_defaults=True):
    """Why not."""

    error_code: str
    """For programs."""
    message: str
    """For people: what, and how to fix it."""
    delegation_task_id: str | None = None
    """Of the task, if there is one."""
    status: str | None = None
    """`FAILED_TERMINAL` of a task that failed."""
    details: str | None = None


class TaskList(Struct, frozen=True, omit_defaults=True):
    """Some tasks, the newest first."""

    tasks: list[TaskDetails]
    next_page_token: str | None = None


class TaskHistory(Struct, frozen=True):
    """All versions of a task, the oldest first."""

    versions: list[TaskDetails]


class TaskWaiting(Struct, frozen=True):
    """How long to wait for the end of a task."""

    wait: Annotated[float, Meta(ge=0.0, le=MOST_WAITED_S)] = 0.0


class TaskSelection(Struct, frozen=True, rename="camel"):
    """Which tasks to list."""

    status: str | None = None
    type: str | None = None
    catalog: str | None = None
    page_size: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE)] = 100
    page_token: str | None = None


def failed_body(task: TaskDetails, error_code: str, message: str) -> ErrorResponse:
    """The body for a task that failed for good."""
    return ErrorResponse(
        error_code=error_code,
        message=message,
        delegation_task_id=task.task_id,
        status=FAILED_TERMINAL,
    )
