"""Tasks of long work: listed, looked at, tried again, given up.

Tasks are told about in the names of the delegation service (`common.delegated.record`), here and there.

Must not break: a task is never changed but through the executor, which asks the service that has it.
"""

from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management.context import BASE
from cynosure.api.management.wire import Camel
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.cancel_task import cancel_task
from cynosure.catalog.operations.list_tasks import list_tasks
from cynosure.catalog.operations.load_task import load_task, load_task_history
from cynosure.catalog.operations.retry_task import retry_task
from cynosure.catalog.task_executor import TaskQuery
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import parse_status, parse_task_type

_MAX_PAGE: Final = 1_000


class TasksQuery(Camel, frozen=True):
    """Which tasks, and how many at once."""

    status: str | None = None
    """Only tasks in this state, such as `FAILURE`."""
    type: str | None = None
    """Only tasks of this kind, such as `TABLE_PURGE`."""
    catalog: str | None = None
    """Only tasks about this catalog. Needed by who may not see those of the whole realm."""
    page_size: Annotated[int, Meta(ge=1, le=_MAX_PAGE)] = 100
    """Most tasks of one answer."""
    page_token: str | None = None
    """Of an earlier answer."""

    def to_query(self) -> TaskQuery:
        """What the operation understands."""
        return TaskQuery(
            status=None if self.status is None else parse_status(self.status),
            task_type=None if self.type is None else parse_task_type(self.type, field="type"),
            catalog=self.catalog,
            page_size=self.page_size,
            page_token=self.page_token or None,
        )


class Tasks(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Some tasks, the newest first."""

    tasks: list[TaskDetails]
    next_page_token: str | None = None


class TaskHistory(Struct, frozen=True):
    """All versions of a task, the oldest first."""

    versions: list[TaskDetails]


class TaskHandlers:
    """The handlers of tasks."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def list(self, request: Request) -> Response:
        """Tasks, the newest first."""
        query: TasksQuery = request.query
        page = await list_tasks(self._directory, caller_of(request), query.to_query())
        return Response.json(Tasks([*page.tasks], page.next_page_token))

    async def load(self, request: Request) -> Response:
        """One task."""
        return Response.json(await load_task(self._directory, caller_of(request), _id_of(request)))

    async def history(self, request: Request) -> Response:
        """All versions of one task."""
        versions = await load_task_history(self._directory, caller_of(request), _id_of(request))
        return Response.json(TaskHistory([*versions]))

    async def retry(self, request: Request) -> Response:
        """Try it again now."""
        return Response.json(await retry_task(self._directory, caller_of(request), _id_of(request)))

    async def cancel(self, request: Request) -> Response:
        """Give it up."""
        return Response.json(await cancel_task(self._directory, caller_of(request), _id_of(request)))


def _id_of(request: Request) -> str:
    return request.params["taskId"]


def task_routes(directory: Directory) -> list[Route]:
    """The routes of tasks."""
    handlers = TaskHandlers(directory)
    many = f"{BASE}/tasks"
    one = f"{many}/{{taskId}}"
    # Without keys: a service of its own has the tasks, and says what a repeated request finds.
    route = partial(Route, tags=("tasks",), changes_nothing=True)
    return [
        route(
            "GET",
            many,
            handlers.list,
            operation_id="listTasks",
            summary="List tasks of long work, the newest first",
            query=TasksQuery,
            responses={200: Tasks},
        ),
        route(
            "GET",
            one,
            handlers.load,
            operation_id="getTask",
            summary="Load a task",
            responses={200: TaskDetails},
        ),
        route(
            "GET",
            f"{one}/history",
            handlers.history,
            operation_id="getTaskHistory",
            summary="Load all versions of a task, the oldest first",
            responses={200: TaskHistory},
        ),
        route(
            "POST",
            f"{one}/retry",
            handlers.retry,
            operation_id="retryTask",
            summary="Try a task that failed, or waits for its next attempt, again now",
            responses={200: TaskDetails},
        ),
        route(
            "POST",
            f"{one}/cancel",
            handlers.cancel,
            operation_id="cancelTask",
            summary="Give a task up that has not ended; what it has done already stays done",
            responses={200: TaskDetails},
        ),
    ]
