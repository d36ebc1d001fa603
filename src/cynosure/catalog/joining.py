"""Turns at a table: who comes while another's change is under way goes with the next one, all at once.

Nobody waits for company: whoever comes first goes at once and alone. The more come meanwhile, the more share
the next change, so a table takes more of them the more there are.

Must not break: the order in which changes are committed is the committer's business alone. This only keeps
changes of one process from being worked out against each other.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextvars import Context
from typing import Any, Final, Generic, NamedTuple, TypeVar

from cynosure.catalog.background import Background

R = TypeVar("R")
M = TypeVar("M")

MOST: Final = 64
"""How many share one change. One that fails is worked out again for all of them."""


class _Alone(NamedTuple):
    """What somebody is told who has to go by itself."""

    has_turn: bool


class _Waiting(NamedTuple):
    member: Any
    together: Callable[[Sequence[Any]], Awaitable[Mapping[Any, Any]]]
    future: asyncio.Future[Any]


class Joining(Generic[M]):
    """The turns of one process, by what is changed."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._waiting: dict[Hashable, deque[_Waiting]] = {}
        """A turn that is taken, and who waits for the next."""

    def is_taken(self, key: Hashable) -> bool:
        """Whether somebody else has the turn, so that whoever comes now has to wait."""
        return key in self._waiting

    async def run(
        self,
        key: Hashable,
        member: M,
        alone: Callable[[], Awaitable[R]],
        together: Callable[[Sequence[M]], Awaitable[Mapping[M, Any]]],
    ) -> R:
        """What `alone` gives, or what `together` gives for this member.

        `together` is that of whoever came last: what it knows of the catalog is the newest. A member that
        its result lacks goes alone.
        """
        waiting = self._waiting.get(key)
        told: Any
        if waiting is None:
            self._waiting[key] = deque()
            told = _Alone(has_turn=True)
        else:
            mine = _Waiting(member, together, asyncio.get_running_loop().create_future())
            waiting.append(mine)
            try:
                told = await mine.future
            except asyncio.CancelledError:
                if mine.future.done() and not mine.future.cancelled() and _has_turn(mine.future):
                    # The turn came at the very moment in which nobody wanted it any more.
                    self._pass_on(key)
                raise
        if not isinstance(told, _Alone):
            result: R = told
            return result
        try:
            return await alone()
        finally:
            if told.has_turn:
                self._pass_on(key)

    def _pass_on(self, key: Hashable) -> None:
        waiting = self._waiting[key]
        group: list[_Waiting] = []
        while waiting and len(group) < MOST:
            next_one = waiting.popleft()
            if not next_one.future.done():
                group.append(next_one)
        if not group:
            del self._waiting[key]
        elif len(group) == 1:
            group[0].future.set_result(_Alone(has_turn=True))
        else:
            # A context of its own: it works for several requests, and must not log or read as one of them.
            work = self._go_together(key, group)
            self._background.start("changes.together", work, context=Context())

    async def _go_together(self, key: Hashable, group: Sequence[_Waiting]) -> None:
        try:
            results = await group[-1].together([each.member for each in group])
        except Exception as error:  # Also a bug is the answer of those who wait for it.
            for each in group:
                if not each.future.done():
                    each.future.set_exception(error)
        else:
            for each in group:
                if not each.future.done():
                    each.future.set_result(results.get(each.member, _Alone(has_turn=False)))
        finally:
            self._pass_on(key)


def _has_turn(future: asyncio.Future[Any]) -> bool:
    if future.exception() is not None:
        return False
    told = future.result()
    return isinstance(told, _Alone) and told.has_turn
