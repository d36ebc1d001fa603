"""Credentials of running scans, renewed before they end.

    register(key, credentials, renew, publish)     one per relation; its fragments share it
    run()          looks every `credential_check` (60 s), sooner when something is due sooner
                   renews what has less than `credential_refresh` (5 minutes) left; of lives that are shorter
                   than twice that: at their half
    publish(newer) called with each renewal; the highest number is the newest
    unregister(key)

A renewal that fails is tried again, with growing pauses, until the credentials have ended.

A maintainer must not break: numbers rise with every renewal, so that a late one cannot replace a newer; after
`unregister` nothing is published; and no credential is ever logged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from typing import Final

import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.common.telemetry.metrics import Counter
from cynosure.query.scan_task import Credentials
from cynosure.query.settings import BrokerSettings

Renew = Callable[[], Awaitable[Credentials]]
Publish = Callable[[Credentials], None]

REFRESHES = Counter(
    "query",
    "credential_refreshes",
    "Renewals of credentials of running scans: renewed, failed, expired.",
    labels=("outcome",),
)

_RENEWAL_S: Final = 30.0
"""One attempt may take so long."""
_SHORTEST_PAUSE_S: Final = 0.25
"""Between two renewals, whatever their lives say: a catalog that gives ended ones is not flooded."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0

_log = Log(__name__)


class _Watched:
    """One relation's credentials."""

    def __init__(self, credentials: Credentials, renew: Renew, publish: Publish) -> None:
        self.newest = credentials
        self.renew = renew
        self.publish = publish
        self.due_ms: float | None = None
        """Wall time of the next renewal; None: there is none."""
        self.failures = 0
        self.task: asyncio.Task[None] | None = None


class CredentialRefresher:
    """Looks after the credentials of all scans of this process. One event loop only."""

    def __init__(self, settings: BrokerSettings, clock: Clock) -> None:
        self._check_s = settings.credential_check.total_seconds()
        self._margin_ms = settings.credential_refresh.total_seconds() * 1_000
        self._clock = clock
        self._watched: dict[Hashable, _Watched] = {}
        self._changed = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look. Twice is once."""
        if self._loop is None:
            self._loop = asyncio.create_task(self._run(), name="credential-refresher")

    async def close(self) -> None:
        """Forget everything."""
        for key in list(self._watched):
            self.unregister(key)
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop
            self._loop = None

    def register(self, key: Hashable, credentials: Credentials, renew: Renew, publish: Publish) -> None:
        """Renew these until `unregister`. `publish` is called in the event loop, and must not fail."""
        self.unregister(key)
        watched = _Watched(credentials, renew, publish)
        watched.due_ms = self._due_ms(credentials)
        self._watched[key] = watched
        self._changed.set()

    def unregister(self, key: Hashable) -> None:
        """Nobody needs them any more. Unknown keys are fine."""
        watched = self._watched.pop(key, None)
        if watched is not None and watched.task is not None:
            watched.task.cancel()

    def get(self, key: Hashable) -> Credentials | None:
        """The newest; None for what is not registered."""
        watched = self._watched.get(key)
        return None if watched is None else watched.newest

    def _due_ms(self, credentials: Credentials) -> float | None:
        if not credentials.expires_ms:
            return None
        now_ms = self._now_ms()
        left_ms = credentials.expires_ms - now_ms
        wait_ms = left_ms - self._margin_ms if left_ms >= 2 * self._margin_ms else left_ms / 2
        return now_ms + max(wait_ms, _SHORTEST_PAUSE_S * 1_000)

    def _now_ms(self) -> float:
        return self._clock.now_us() / 1_000

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            now_ms = self._now_ms()
            pause_s = self._check_s
            for key, watched in self._watched.items():
                if watched.due_ms is None or watched.task is not None:
                    continue
                if watched.due_ms <= now_ms:
                    watched.task = asyncio.create_task(self._renew(key, watched))
                else:
                    pause_s = min(pause_s, (watched.due_ms - now_ms) / 1_000)
            await self._pause(pause_s)

    async def _pause(self, seconds: float) -> None:
        """Until then, or until something changed."""
        waits = {
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(self._changed.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _renew(self, key: Hashable, watched: _Watched) -> None:
        try:
            async with asyncio.timeout(_RENEWAL_S):
                renewed = await watched.renew()
        except (CynosureError, TimeoutError) as error:
            self._put_off(watched, error)
            return
        finally:
            watched.task = None
            self._changed.set()
        if self._watched.get(key) is not watched:
            return
        # Whoever renews need not count: a later answer is a newer one, because there is one at a time.
        number = max(watched.newest.number + 1, renewed.number)
        watched.newest = msgspec.structs.replace(renewed, number=number)
        watched.failures = 0
        watched.due_ms = self._due_ms(watched.newest)
        REFRESHES.inc(outcome="renewed")
        watched.publish(watched.newest)

    def _put_off(self, watched: _Watched, error: Exception) -> None:
        watched.failures += 1
        pause_s = min(_FIRST_PAUSE_S * 2 ** min(watched.failures - 1, 16), _LONGEST_PAUSE_S)
        left_s = (watched.newest.expires_ms - self._now_ms()) / 1_000
        if left_s <= 0:
            # The scans say so themselves, when the storage refuses them.
            watched.due_ms = None
            outcome = "expired"
        else:
            # Not behind the end: a short life gets its last chance.
            pause_s = max(min(pause_s, left_s / 2), _SHORTEST_PAUSE_S)
            watched.due_ms = self._now_ms() + pause_s * 1_000
            outcome = "failed"
        REFRESHES.inc(outcome=outcome)
        _log.event(
            "credentials.not_renewed",
            level=WARNING,
            kind=type(error).__name__,
            failures=watched.failures,
            is_expired=outcome == "expired",
        )
