"""The executor that sends everything to a delegation service.

A maintainer must not break: `Unavailable` of an order means that it certainly did not arrive. Once the
service may have it, every trouble is `OutcomeUnknown`, until `find` has clarified it.
"""

from collections.abc import Awaitable, Callable, Sequence

from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.client.delegation import DelegationApi, accepted_then_lost
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.errors import NotAuthenticated, NotFound, OutcomeUnknown, Unavailable

ApiOf = Callable[[str], DelegationApi]
"""The service as the catalog of a realm speaks to it."""
Prepare = Callable[[TaskOrder], Awaitable[None]]


class DelegatedTaskExecutor:
    """A `TaskExecutor`: `cynosure.catalog.task_executor`."""

    is_delegated = True

    def __init__(self, api_of: ApiOf, prepare: Prepare | None = None) -> None:
        """`prepare` is called before an order is sent: what it raises keeps it from being sent."""
        self._api_of = api_of
        self._prepare = prepare

    async def purge_table(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await self._order(order)

    async def expire_snapshots(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await self._order(order)

    async def compact_data(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await self._order(order)

    async def remove_orphan_files(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await self._order(order)

    async def compact_metadata(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await self._order(order)

    async def convert_format(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await self._order(order)

    async def find(self, realm: str, task_id: str) -> TaskDetails | None:  # noqa: D102
        return await self._api_of(realm).find(task_id)

    async def wait(self, realm: str, task_id: str, timeout_s: float) -> TaskDetails | None:  # noqa: D102
        return await self._api_of(realm).wait(task_id, timeout_s)

    async def history(self, realm: str, task_id: str) -> Sequence[TaskDetails]:  # noqa: D102
        return await self._api_of(realm).history(task_id)

    async def list(self, realm: str, query: TaskQuery) -> TaskPage:  # noqa: D102
        wanted = {
            "status": query.status,
            "type": query.task_type,
            "catalog": query.catalog,
            "pageSize": str(query.page_size),
            "pageToken": query.page_token,
        }
        found = await self._api_of(realm).list(
            {name: str(value) for name, value in wanted.items() if value is not None}
        )
        return TaskPage(found.tasks, found.next_page_token)

    async def retry(self, realm: str, task_id: str) -> TaskDetails:  # noqa: D102
        return await self._api_of(realm).retry(task_id)

    async def cancel(self, realm: str, task_id: str) -> TaskDetails:  # noqa: D102
        return await self._api_of(realm).cancel(task_id)

    async def _order(self, order: TaskOrder) -> TaskDetails:
        if self._prepare is not None:
            await self._prepare(order)
        api = self._api_of(order.realm)
        try:
            taken = await api.submit(order)
        except OutcomeUnknown as error:
            # It may be there: who asks knows.
            return await self._clarify(api, order, error)
        try:
            found = await api.find(taken.delegation_task_id)
        except (Unavailable, NotAuthenticated) as error:
            raise accepted_then_lost(error) from error
        if found is None:
            raise accepted_then_lost(NotFound("The service has forgotten the task"))
        return found

    async def _clarify(self, api: DelegationApi, order: TaskOrder, error: OutcomeUnknown) -> TaskDetails:
        try:
            found = await api.find(order.task_id)
        except (Unavailable, NotAuthenticated):
            raise error from None
        # That it is not there now does not say that it will not arrive yet.
        if found is None:
            raise error
        return found
