"""Something that a remote gives for a while, renewed in time, by one request for all who wait.

A maintainer must not break: whoever is cancelled while waiting does not end the request of the others; and
what was got a moment ago is not asked for again because it was refused, or a remote that refuses everything
would be asked twice as often as it is used.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, TypeVar

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log

T = TypeVar("T")

_RENEW_AT: Final = 0.75
"""The part of a life after which another one is asked for, while this one still serves."""
_SPARE: Final = 0.1
"""The last part of a life, in which it is not used any more; at most `_MOST_SPARE_S`."""
_MOST_SPARE_S: Final = 30.0
_PAUSE_S: Final = 1.0
"""Between two attempts that nobody waits for; what is younger than this is not renewed."""
_log = Log(__name__)


class _Held(NamedTuple, Generic[T]):
    value: T
    got_s: float
    renew_s: float
    good_until_s: float


class Renewed(Generic[T]):
    """A value with a life."""

    def __init__(self, fetch: Callable[[], Awaitable[tuple[T, float]]], clock: Clock) -> None:
        """`fetch` gives a value and its life in seconds, or raises an error of our tree."""
        self._fetch = fetch
        self._clock = clock
        self._held: _Held[T] | None = None
        self._tried_s = float("-inf")
        self._fetching: asyncio.Task[T | CynosureError] | None = None

    @property
    def last(self) -> T | None:
        """What was got last, however old; asks nobody."""
        return None if self._held is None else self._held.value

    async def get(self) -> T:
        """The value, fetched when there is none that is good."""
        held, now_s = self._held, self._clock.monotonic_s()
        if held is None or now_s >= held.good_until_s:
            return await self.fetch()
        if now_s >= held.renew_s and now_s - self._tried_s >= _PAUSE_S:
            self._begin()
        return held.value

    async def renew(self, refused: T) -> bool:
        """After `refused` was: whether there is another one now."""
        held = self._held
        if held is None or held.value is not refused:
            return True
        if self._clock.monotonic_s() - held.got_s < _PAUSE_S:
            return False
        await self.fetch()
        return True

    async def fetch(self) -> T:
        """Another value, whatever there is; with all others who wait for one now."""
        got = await asyncio.shield(self._begin())
        if isinstance(got, CynosureError):
            raise got
        return got

    async def close(self) -> None:
        """End what is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    def _begin(self) -> "asyncio.Task[T | CynosureError]":
        if self._fetching is None:
            self._tried_s = self._clock.monotonic_s()
            self._fetching = asyncio.create_task(self._run())
        return self._fetching

    async def _run(self) -> T | CynosureError:
        try:
            value, life_s = await self._fetch()
        except CynosureError as error:
            _log.event("federation.renewal_failed", level=WARNING, error=error)
            return error
        finally:
            self._fetching = None
        now_s = self._clock.monotonic_s()
        spare_s = min(_SPARE * life_s, _MOST_SPARE_S)
        self._held = _Held(value, now_s, now_s + _RENEW_AT * life_s, now_s + life_s - spare_s)
        return value
