"""The routes of the delegation service.

A maintainer must not break: an order is kept before anybody waits for it, so whoever loses the connection
finds the task again under its correlation id.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from cynosure.api.delegation.errors import NoSuchTask, WrongRealm
from cynosure.api.delegation.outcomes import accepted, waited_for
from cynosure.api.delegation.wire import (
    BASE,
    ErrorResponse,
    TaskAccepted,
    TaskHistory,
    TaskList,
    TaskSelection,
    TaskSuccessResponse,
    TaskWaiting,
)
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder, TaskPayload, parse_order
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import parse_status, parse_task_type

_TAGS: Final = ("Task Execution API",)


class Tasks(Protocol):
    """What the service can be asked for; `cynosure.delegation.service` does it."""

    async def submit(self, order: TaskOrder) -> TaskDetails:
        """Keep an order; the same one again is the same task, another one under its id is `Conflict`."""
        ...

    async def find(self, task_id: str) -> TaskDetails | None:
        """A task as it is now."""
        ...

    async def wait(self, task_id: str, timeout_s: float) -> TaskDetails | None:
        """A task when it has ended, or when the time is over."""
        ...

    async def history(self, task_id: str) -> Sequence[TaskDetails]:
        """All versions of a task, the oldest first."""
        ...

    async def list(self, query: TaskQuery) -> TaskPage:
        """Tasks, the newest first."""
        ...

    async def retry(self, task_id: str) -> TaskDetails:
        """Try a task again now."""
        ...

    async def cancel(self, task_id: str) -> TaskDetails:
        """Give a task up."""
        ...


class TaskHandlers:
    """The handlers of a service that works for one realm."""

    def __init__(self, tasks: Tasks, *, realm: str, clock: Clock) -> None:
        self._tasks = tasks
        self._realm = realm
        self._clock = clock

    async def execute(self, request: Request) -> Response:
        """Keep an order, and wait for its end."""
        task = await self._tasks.submit(self._read_order(request))
        ended = await self._tasks.wait(task.task_id, self._left_s(request, float("inf")))
        return waited_for(ended or task)

    async def submit(self, request: Request) -> Response:
        """Keep an order."""
        return accepted(await self._tasks.submit(self._read_order(request)))

    async def load(self, request: Request) -> Response:
        """A task, as it is or when it has ended."""
        task_id, wait_s = request.params["task_id"], self._left_s(request, request.query.wait)
        found = await (self._tasks.wait(task_id, wait_s) if wait_s > 0 else self._tasks.find(task_id))
        if found is None:
            raise NoSuchTask(task_id)
        return Response.json(found)

    async def load_history(self, request: Request) -> Response:
        """All versions of a task."""
        versions = await self._tasks.history(request.params["task_id"])
        if not versions:
            raise NoSuchTask(request.params["task_id"])
        return Response.json(TaskHistory(list(versions)))

    async def list(self, request: Request) -> Response:
        """Tasks, the newest first."""
        wanted: TaskSelection = request.query
        page = await self._tasks.list(
            TaskQuery(
                status=None if wanted.status is None else parse_status(wanted.status),
                task_type=None if wanted.type is None else parse_task_type(wanted.type, field="type"),
                catalog=wanted.catalog,
                page_size=wanted.page_size,
                page_token=wanted.page_token,
            )
        )
        return Response.json(TaskList([*page.tasks], page.next_page_token))

    async def retry(self, request: Request) -> Response:
        """Try a task again now."""
        return Response.json(await self._tasks.retry(await self._require(request)))

    async def cancel(self, request: Request) -> Response:
        """Give a task up."""
        return Response.json(await self._tasks.cancel(await self._require(request)))

    def _read_order(self, request: Request) -> TaskOrder:
        payload: TaskPayload = request.body
        if payload.common_payload.realm_identifier != self._realm:
            raise WrongRealm(
                "This service works for another realm",
                fix="Send the order to the service of its realm.",
                field="common_payload.realm_identifier",
            )
        return parse_order(payload)

    def _left_s(self, request: Request, wanted_s: float) -> float:
        return request.cut_wait_s(wanted_s, now_s=self._clock.monotonic_s())

    async def _require(self, request: Request) -> str:
        task_id = request.params["task_id"]
        if await self._tasks.find(task_id) is None:
            raise NoSuchTask(task_id)
        return task_id


def delegation_routes(tasks: Tasks, *, realm: str, clock: Clock) -> list[Route]:
    """All routes of a service that works for one realm."""
    handlers = TaskHandlers(tasks, realm=realm, clock=clock)
    one = f"{BASE}/tasks/{{task_id}}"
    return [
        Route(
            "POST",
            f"{BASE}/tasks/execute/synchronous",
            handlers.execute,
            operation_id="executeSynchronousTask",
            summary="Submits a task for immediate, synchronous execution",
            tags=_TAGS,
            request=TaskPayload,
            responses={200: TaskSuccessResponse, 500: ErrorResponse, 502: ErrorResponse, 504: ErrorResponse},
        ),
        Route(
            "POST",
            f"{BASE}/tasks",
            handlers.submit,
            operation_id="submitTask",
            summary="Submits a task that is done in the background",
            tags=_TAGS,
            request=TaskPayload,
            responses={202: TaskAccepted},
        ),
        Route(
            "GET",
            f"{BASE}/tasks",
            handlers.list,
            operation_id="listTasks",
            summary="Tasks, the newest first",
            tags=_TAGS,
            query=TaskSelection,
            responses={200: TaskList},
        ),
        Route(
            "GET",
            one,
            handlers.load,
            operation_id="getTask",
            summary="A task as it is now, or when it has ended (`wait`)",
            tags=_TAGS,
            query=TaskWaiting,
            responses={200: TaskDetails},
        ),
        Route(
            "GET",
            f"{one}/history",
            handlers.load_history,
            operation_id="getTaskHistory",
            summary="All versions of a task, the oldest first",
            tags=_TAGS,
            responses={200: TaskHistory},
        ),
        Route(
            "POST",
            f"{one}/retry",
            handlers.retry,
            operation_id="retryTask",
            summary="Tries a task again now that failed or waits for its next attempt",
            tags=_TAGS,
            responses={200: TaskDetails},
        ),
        Route(
            "POST",
            f"{one}/cancel",
            handlers.cancel,
            operation_id="cancelTask",
            summary="Gives a task up that has not ended",
            tags=_TAGS,
            responses={200: TaskDetails},
        ),
    ]
