"""Tasks of long work, as a catalog server tells about them.

Must not break: nothing here is repeated blindly. A task that is tried again or given up twice is refused, and
that is the answer.
"""

from typing import Final

from msgspec import Struct, field

from cynosure.client.api import ApiClient, segment
from cynosure.common.delegated.record import TaskDetails

_BASE: Final = "/api/management/v1/tasks"
_PAGE: Final = 1_000


class _Page(Struct, rename="camel"):
    tasks: list[TaskDetails] = field(default_factory=list)
    next_page_token: str | None = None


class _History(Struct):
    versions: list[TaskDetails]


class TaskApi:
    """The tasks of one realm."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def list_newest(
        self, limit: int, *, status: str | None = None, kind: str | None = None, catalog: str | None = None
    ) -> list[TaskDetails]:
        """At most so many tasks, the newest first."""
        given = {"status": status, "type": kind, "catalog": catalog}
        query = {name: value for name, value in given.items() if value is not None}
        found: list[TaskDetails] = []
        while len(found) < limit:
            query["pageSize"] = str(min(_PAGE, limit - len(found)))
            page = (await self._api.request("GET", _BASE, query=query)).decode(_Page)
            found += page.tasks
            if not page.next_page_token:
                break
            query["pageToken"] = page.next_page_token
        return found

    async def load(self, task_id: str) -> TaskDetails:
        """One task."""
        return (await self._api.request("GET", f"{_BASE}/{segment(task_id)}")).decode(TaskDetails)

    async def load_history(self, task_id: str) -> list[TaskDetails]:
        """All its versions, the oldest first."""
        reply = await self._api.request("GET", f"{_BASE}/{segment(task_id)}/history")
        return reply.decode(_History).versions

    async def retry(self, task_id: str) -> TaskDetails:
        """Try it again now."""
        return await self._ask(task_id, "retry")

    async def cancel(self, task_id: str) -> TaskDetails:
        """Give it up."""
        return await self._ask(task_id, "cancel")

    async def _ask(self, task_id: str, what: str) -> TaskDetails:
        path = f"{_BASE}/{segment(task_id)}/{what}"
        return (await self._api.request("POST", path, is_repeatable=False)).decode(TaskDetails)
