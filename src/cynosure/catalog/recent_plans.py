"""Plans that are still being made, and those that were made last, of one process.

What is here can be made again from the stored plan, by this server or another one.

A maintainer must not break: both are bounded by number, and what is kept for one viewer is never found by
another: the key names all that an answer depends on.
"""

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cynosure.common.errors import Unavailable
from cynosure.persistence.spi import ObjId

_MOST_PLANNERS: Final = 8
"""Each may hold the delete files of a table, beside those that `RecentManifests` counts."""

P = TypeVar("P")


class PlanKey(NamedTuple):
    """A plan as one viewer sees it."""

    plan_id: ObjId
    viewer: object


class Plans(Generic[P]):
    """The plans of one process: `P` makes the pages of one."""

    def __init__(self, most_running: int) -> None:
        self._most_running = most_running
        self._running: OrderedDict[PlanKey, asyncio.Future[Any]] = OrderedDict()
        self._planners: OrderedDict[PlanKey, P] = OrderedDict()
        # Of their own: filters that take long must not keep others from theirs.
        self.threads: Final = ThreadPoolExecutor(2, thread_name_prefix="plans")

    def find_planner(self, key: PlanKey) -> P | None:
        """What makes the pages of a plan, if it is in memory."""
        found = self._planners.get(key)
        if found is not None:
            self._planners.move_to_end(key)
        return found

    def keep_planner(self, key: PlanKey, planner: P) -> None:
        """Have it at hand for the next page; the one used longest ago makes room."""
        self._planners[key] = planner
        while len(self._planners) > _MOST_PLANNERS:
            self._planners.popitem(last=False)

    def find_running(self, key: PlanKey) -> "asyncio.Future[Any] | None":
        """The first page of a plan that its client did not wait for: under way or there."""
        return self._running.get(key)

    def keep_running(self, key: PlanKey, page: "asyncio.Future[Any]") -> None:
        """Go on with a page that its client comes back for; `Unavailable` when too many are under way."""
        if len(self._running) >= self._most_running:
            # One that is there already can be made again.
            done = next((each for each, made in self._running.items() if made.done()), None)
            if done is None:
                page.cancel()
                raise Unavailable(
                    "Too many scans are being planned in the background", fix="Plan the scan again later."
                )
            del self._running[done]
        # Its outcome is told to whoever asks; that nobody did is no event.
        page.add_done_callback(lambda made: made.cancelled() or made.exception())
        self._running[key] = page

    def forget(self, plan_id: ObjId) -> None:
        """End what is done for a plan."""
        for key in [each for each in self._running if each.plan_id == plan_id]:
            self._running.pop(key).cancel()
        for key in [each for each in self._planners if each.plan_id == plan_id]:
            del self._planners[key]

    def close(self) -> None:
        """End everything."""
        for page in self._running.values():
            page.cancel()
        self._running.clear()
        self._planners.clear()
        self.threads.shutdown(wait=False, cancel_futures=True)
