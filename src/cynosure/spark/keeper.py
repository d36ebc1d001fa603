"""One driver for all jobs: started when it is needed, replaced when it died, ended when nobody needs it.

A maintainer must not break: a driver that died costs the jobs that ran there one attempt, and nothing else;
the next job gets a new one.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.delegated.settings import SparkSettings
from cynosure.spark.driver_process import DriverProcess

_WATCH_S: Final = 1.0


class DriverKeeper:
    """Keeps one driver of a kind."""

    def __init__(
        self,
        settings: SparkSettings,
        clock: Clock,
        *,
        kind: str,
        jobs: Mapping[str, str],
        java_options: Callable[[Path], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._kind = kind
        self._jobs = jobs
        self._java_options = java_options
        self._driver: DriverProcess | None = None
        self._starting = asyncio.Lock()
        self._busy = 0
        self._used_s = clock.monotonic_s()
        self._idling: asyncio.Task[None] | None = None

    @property
    def running(self) -> DriverProcess | None:
        """The driver that runs now."""
        return self._driver if self._driver is not None and not self._driver.is_gone else None

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses the driver now."""
        return not self._is_busy()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[DriverProcess]:
        """A driver, which is not ended for idleness meanwhile."""
        self._busy += 1
        try:
            yield await self._get_driver()
        finally:
            self._busy -= 1
            self._used_s = self._clock.monotonic_s()

    async def close(self) -> None:
        """End the driver."""
        if self._idling is not None:
            self._idling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._idling
            self._idling = None
        async with self._starting:
            driver, self._driver = self._driver, None
            if driver is not None:
                await driver.close()

    async def _get_driver(self) -> DriverProcess:
        async with self._starting:
            if self._driver is not None and self._driver.is_gone:
                driver, self._driver = self._driver, None
                await driver.close()
            if self._driver is None:
                driver = DriverProcess(
                    self._settings, kind=self._kind, jobs=self._jobs, java_options=self._java_options
                )
                await driver.start()
                self._driver = driver
                if self._idling is None or self._idling.done():
                    self._idling = asyncio.create_task(self._end_when_idle())
            return self._driver

    def _is_busy(self) -> bool:
        return self._busy > 0

    async def _end_when_idle(self) -> None:
        timeout_s = self._settings.idle_timeout.total_seconds()
        while True:
            left_s = self._used_s + timeout_s - self._clock.monotonic_s()
            if self._is_busy() or left_s > 0:
                await self._clock.sleep(max(left_s, min(timeout_s, _WATCH_S)))
                continue
            async with self._starting:
                # Somebody may have come while the lock was taken.
                if self._is_busy():
                    continue
                driver, self._driver = self._driver, None
                if driver is not None:
                    await driver.close()
                return
