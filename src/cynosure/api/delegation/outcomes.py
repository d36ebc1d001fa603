"""How a task is answered to whoever waited for it.

A maintainer must not break: a task that has not ended is never answered as if it had; who waited is told that
it goes on, and how to ask for it.
"""

from types import MappingProxyType
from typing import Final

from cynosure.api.delegation.wire import (
    BASE,
    ErrorResponse,
    ExecutionSummary,
    TaskAccepted,
    TaskSuccessResponse,
    failed_body,
)
from cynosure.api.messages import Response
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import (
    COMPLETED_SUCCESS,
    FAILED_TERMINAL,
    QUEUED,
    TaskStatus,
)
from cynosure.delegation.worker.outcome import status_of

STILL_RUNNING: Final = "TASK_STILL_RUNNING"
TASK_FAILED: Final = "TASK_FAILED"

_SUBMITTED_NAMES: Final = MappingProxyType(
    {
        TaskStatus.SUBMITTED: QUEUED,
        TaskStatus.SUCCESS: COMPLETED_SUCCESS,
        TaskStatus.FAILURE: FAILED_TERMINAL,
    }
)


def url_of(task_id: str) -> str:
    """Where a task can be asked for."""
    return f"{BASE}/tasks/{task_id}"


def accepted(task: TaskDetails) -> Response:
    """The answer to who does not wait."""
    status = _SUBMITTED_NAMES.get(task.status, task.status.value)
    body = TaskAccepted(task.task_id, status, url_of(task.task_id))
    return Response.json(body, status=202, headers=[(b"location", url_of(task.task_id).encode())])


def waited_for(task: TaskDetails) -> Response:
    """The answer to who waited for the end."""
    if task.status is TaskStatus.SUCCESS:
        done = task.execution_result
        return Response.json(
            TaskSuccessResponse(
                task.task_id,
                task.result_summary or "The task is done.",
                ExecutionSummary(done.files_deleted, done.bytes_deleted),
            )
        )
    if task.status is TaskStatus.FAILURE:
        code = task.error_code or TASK_FAILED
        body = failed_body(task, code, task.result_summary or "The task failed.")
        return Response.json(body, status=status_of(task))
    unfinished = ErrorResponse(
        error_code=STILL_RUNNING,
        message=f"The task has not ended in time and goes on. Ask for it at {url_of(task.task_id)}.",
        delegation_task_id=task.task_id,
        details=task.result_summary,
    )
    return Response.json(unfinished, status=504)
