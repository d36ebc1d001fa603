"""So many requests to a remote at once, so many waiting for their turn, and nobody at the cost of others.

Who waits stands in the line of its principal. A turn goes to the line whose principal has the fewest, and
among equals round and round. When too many wait, the longest line gives its last place up: so whoever asks a
thousand times is turned away, and not those who ask once. And nobody has all turns, else what is slow for one
would be slow for all.

A maintainer must not break: a turn that was given to somebody who has gone meanwhile is given on; and no turn
is left over while somebody waits who may have it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from cynosure.federation.settings import FederationSettings


class Limit:
    """The turns at one remote in one process."""

    def __init__(
        self, settings: FederationSettings, *, queued: Callable[[int], None] = lambda _: None
    ) -> None:
        self._most_running = settings.concurrent
        self._most_each = settings.concurrent_each
        self._most_waiting = settings.waiting
        self._queued = queued
        self._lines: dict[str, deque[asyncio.Future[bool]]] = {}
        """Who waits, by principal; the one that had a turn last is the last one."""
        self._has: dict[str, int] = {}
        """Turns of each principal that has one."""
        self.running = 0
        """Requests that have a turn."""
        self.waiting = 0
        """Requests that wait for one."""

    async def acquire(self, who: str = "") -> bool:
        """Take a turn, waiting for it if need be. `False`: too many wait already. Hand it back: `release`."""
        if self.running < self._most_running and self._may_have(who):
            self._take(who)
            return True
        if self.waiting >= self._most_waiting and not self._make_room(who):
            return False
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, deque()).append(turn)
        self.waiting += 1
        self._queued(1)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled() or not turn.done():
                self._leave(who, turn)
            elif turn.result():
                # It came at the very moment we were told to stop.
                self.release(who)
            raise
        finally:
            self._queued(-1)

    def release(self, who: str = "") -> None:
        """Hand a turn back, to whoever is next."""
        self.running -= 1
        left = self._has[who] - 1
        if left:
            self._has[who] = left
        else:
            del self._has[who]
        while (following := self._choose()) is not None:
            turn = self._step_out(following)
            if not turn.done():
                self._take(following)
                if (line := self._lines.pop(following, None)) is not None:
                    self._lines[following] = line
                turn.set_result(True)
                return

    def _may_have(self, who: str) -> bool:
        return self._has.get(who, 0) < self._most_each

    def _take(self, who: str) -> None:
        self.running += 1
        self._has[who] = self._has.get(who, 0) + 1

    def _choose(self) -> str | None:
        """Whose line is next, if there is one."""
        if not self._lines:
            return None
        # The first of the least.
        who = min(self._lines, key=lambda each: self._has.get(each, 0))
        return who if self._may_have(who) else None

    def _make_room(self, who: str) -> bool:
        """Turn the last one of the longest line away, unless that is the line of whoever comes."""
        if not self._lines:
            return False
        longest = max(self._lines, key=lambda each: len(self._lines[each]))
        if len(self._lines[longest]) <= len(self._lines.get(who, ())) + 1:
            return False
        turn = self._step_out(longest, at=-1)
        if not turn.done():
            turn.set_result(False)
        return True

    def _leave(self, who: str, turn: asyncio.Future[bool]) -> None:
        line = self._lines.get(who)
        if line is not None and turn in line:
            self._step_out(who, at=line.index(turn))

    def _step_out(self, who: str, *, at: int = 0) -> asyncio.Future[bool]:
        line = self._lines[who]
        turn = line[at]
        del line[at]
        self.waiting -= 1
        if not line:
            del self._lines[who]
        return turn
