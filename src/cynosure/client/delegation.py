"""A delegation service, call by call.

A maintainer must not break: an order carries a correlation id, so it may be repeated; and that there is no
such task is believed only where the service itself says so, not where any 404 comes back.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from cynosure.client.api import segment
from cynosure.client.errors import ServerFailed
from cynosure.client.http import Failed, HttpClient, Reply
from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.errors import CynosureError, NotAuthenticated, NotFound, OutcomeUnknown, Unavailable
from cynosure.common.retry import Backoff
from cynosure.common.secrets import Secret

T = TypeVar("T")

BASE: Final = "/delegation-service/api/v1"
NO_SUCH_TASK: Final = "TASK_NOT_FOUND"
ORDER_TIMEOUT_S: Final = 5.0
"""How long an order is repeated that nobody takes: a restart of the service is not noticed, an outage is."""
READ_TIMEOUT_S: Final = 15.0
_POLL_S: Final = 20.0
"""How long one question for the end of a task waits."""
_SPARE_S: Final = 10.0
"""How much longer its answer may take."""


class Tokens(Protocol):
    """Tokens for one realm's service."""

    async def load(self) -> Secret:
        """One that is good for a while yet."""
        ...

    def drop(self) -> None:
        """The service refused it."""
        ...


class Accepted(Struct, frozen=True):
    """What the service says to an order."""

    delegation_task_id: str
    status: str
    status_query_url: str = ""


class Listed(Struct, frozen=True):
    """Some tasks, the newest first."""

    tasks: list[TaskDetails]
    next_page_token: str | None = None


class _History(Struct, frozen=True):
    versions: list[TaskDetails]


class DelegationApi:
    """The service of one realm."""

    def __init__(
        self,
        http: HttpClient,
        tokens: Tokens,
        *,
        order_timeout_s: float = ORDER_TIMEOUT_S,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self._http = http
        self._tokens = tokens
        self._order_timeout_s = order_timeout_s
        self._read_timeout_s = read_timeout_s
        self._clock: Clock = http.clock

    async def submit(self, order: TaskOrder) -> Accepted:
        """Give an order. `Unavailable`: it certainly did not arrive; `OutcomeUnknown`: it may have."""
        headers = {"traceparent": order.traceparent} if order.traceparent else {}
        reply = await self._request(
            "POST",
            f"{BASE}/tasks",
            body=order.to_payload(),
            headers=headers,
            timeout_s=self._order_timeout_s,
            is_repeatable=True,
        )
        return reply.decode(Accepted)

    async def find(self, task_id: str) -> TaskDetails | None:
        """A task as it is; `None` when the service says that it has none of this id."""
        return await _unless_missing(self._load(TaskDetails, _path(task_id)))

    async def wait(self, task_id: str, timeout_s: float) -> TaskDetails | None:
        """As `find`, when the task has ended or the time is over; the service may restart meanwhile."""
        deadline_s = self._clock.monotonic_s() + timeout_s
        backoff = Backoff(self._clock, self._http.rng, first_s=0.1, max_s=1.0, deadline_s=timeout_s)
        while True:
            asked_s = self._clock.monotonic_s()
            wait_s = max(0.0, min(_POLL_S, deadline_s - asked_s))
            answer = await self._poll(task_id, wait_s)
            now_s = self._clock.monotonic_s()
            if isinstance(answer, Failed):
                error = _as_trouble(answer.error)
                if is_no_such_task(error):
                    return None
                if not isinstance(error, Unavailable):
                    raise error
                if now_s >= deadline_s or not await backoff.wait(at_least_s=answer.retry_after_s):
                    raise error
                continue
            task = answer.decode(TaskDetails)
            if task.status.is_terminal or now_s >= deadline_s:
                return task
            backoff = Backoff(
                self._clock, self._http.rng, first_s=0.1, max_s=1.0, deadline_s=deadline_s - now_s
            )
            if now_s - asked_s < wait_s / 2:
                # A service that is about to end lets nobody wait.
                await backoff.wait()

    async def history(self, task_id: str) -> list[TaskDetails]:
        """All versions of a task, the oldest first; none when there is no such task."""
        found = await _unless_missing(self._load(_History, f"{_path(task_id)}/history"))
        return [] if found is None else found.versions

    async def list(self, query: Mapping[str, str]) -> Listed:
        """Tasks, the newest first."""
        return await self._load(Listed, f"{BASE}/tasks", query)

    async def retry(self, task_id: str) -> TaskDetails:
        """Try a task again now."""
        return (await self._request("POST", f"{_path(task_id)}/retry")).decode(TaskDetails)

    async def cancel(self, task_id: str) -> TaskDetails:
        """Give a task up."""
        return (await self._request("POST", f"{_path(task_id)}/cancel")).decode(TaskDetails)

    async def _load(self, answer: type[T], path: str, query: Mapping[str, str] | None = None) -> T:
        return (await self._request("GET", path, query=query)).decode(answer)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        is_repeatable: bool | None = None,
    ) -> Reply:
        async def send() -> Reply:
            return await self._http.request(
                method,
                path,
                body=body,
                query=query,
                headers={**(headers or {}), **await self._sign()},
                timeout_s=self._read_timeout_s if timeout_s is None else timeout_s,
                is_repeatable=is_repeatable,
            )

        try:
            try:
                return await send()
            except NotAuthenticated:
                # Nothing was done for a token that is refused: any request may be sent again.
                self._tokens.drop()
                return await send()
        except (NotFound, ServerFailed) as error:
            raise _as_trouble(error) from error

    async def _poll(self, task_id: str, wait_s: float) -> Reply | Failed:
        async def send() -> Reply | Failed:
            return await self._http.attempt(
                "GET",
                _path(task_id),
                query={"wait": f"{wait_s:.3f}"},
                headers=await self._sign(),
                timeout_s=wait_s + _SPARE_S,
            )

        answer = await send()
        if isinstance(answer, Failed) and answer.status == 401:
            self._tokens.drop()
            answer = await send()
        return answer

    async def _sign(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {(await self._tokens.load()).reveal()}"}


async def _unless_missing(loading: Awaitable[T]) -> T | None:
    try:
        return await loading
    except NotFound as error:
        if is_no_such_task(error):
            return None
        raise


def is_no_such_task(error: CynosureError) -> bool:
    """Whether the service itself says that it does not have a task."""
    return isinstance(error, NotFound) and error.details.get("type") == NO_SUCH_TASK


def _as_trouble(error: CynosureError) -> CynosureError:
    """An error as callers know it: a service that fails, or is none, is one that cannot be asked now."""
    if isinstance(error, NotFound) and not is_no_such_task(error):
        return Unavailable(
            "What answers at the delegation service's address is not one",
            fix="Check delegation.endpoint.",
            reason=error.message,
        )
    if isinstance(error, ServerFailed):
        return Unavailable(
            "The delegation service failed", fix="Look for the reason in its log.", reason=str(error)
        )
    return error


def _path(task_id: str) -> str:
    return f"{BASE}/tasks/{segment(task_id)}"


def accepted_then_lost(error: Exception) -> OutcomeUnknown:
    """For an order that was taken, and could not be asked for right after."""
    return OutcomeUnknown(
        "The order was taken, and the service does not answer any more",
        fix="Ask for the task by its id later.",
        reason=str(error),
    )
