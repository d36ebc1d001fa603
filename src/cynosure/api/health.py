"""Liveness and readiness: `/health/live` says the process runs, `/health/ready` that it can work.

A maintainer must not break: liveness never depends on anything outside the process, or an outage of
the database becomes a restart of every server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError

Check: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when all is well; raises what is wrong."""


class Health(Struct, frozen=True):
    """The answer of both health endpoints."""

    status: str
    """`live`, `ready` or `not ready`."""
    not_ready: dict[str, str] = {}
    """What is not ready, by name, with its reason."""


class Readiness:
    """Runs the registered checks, at most once per `cache_s`, one run shared by all who ask."""

    def __init__(self, clock: Clock, *, cache_s: float = 1.0, check_timeout_s: float = 2.0) -> None:
        self._clock = clock
        self._cache_s = cache_s
        self._check_timeout_s = check_timeout_s
        self._checks: dict[str, Check] = {}
        self._running: asyncio.Task[Health] | None = None
        self._last: Health | None = None
        self._last_at_s = 0.0
        self._stopping = False
        self._farewells: list[Callable[[], None]] = []

    def register(self, name: str, check: Check) -> None:
        """Add something without which this server cannot work."""
        self._checks[name] = check

    def begin_shutdown(self) -> None:
        """From now on not ready, so that a load balancer sends new work elsewhere."""
        self._stopping = True
        for farewell in self._farewells:
            farewell()

    def on_shutdown(self, farewell: Callable[[], None]) -> None:
        """Call this when the shutdown begins: requests that only wait for something must not hold it up."""
        self._farewells.append(farewell)

    async def load(self) -> Health:
        """The state now, or as it was less than `cache_s` ago."""
        if self._stopping:
            return Health("not ready", {"server": "shutting down"})
        if self._last is not None and self._clock.monotonic_s() - self._last_at_s < self._cache_s:
            return self._last
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        # Shielded: one impatient caller must not cancel the run the others wait for.
        return await asyncio.shield(self._running)

    async def _run(self) -> Health:
        try:
            names = list(self._checks)
            reasons = await asyncio.gather(*(self._find_fault(self._checks[name]) for name in names))
            faults = {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}
            self._last = Health("not ready", faults) if faults else Health("ready")
            self._last_at_s = self._clock.monotonic_s()
            return self._last
        finally:
            self._running = None

    async def _find_fault(self, check: Check) -> str | None:
        try:
            async with asyncio.timeout(self._check_timeout_s):
                await check()
        except TimeoutError:
            return f"did not answer within {self._check_timeout_s:g} s"
        except CynosureError as error:
            return f"{error.message}. {error.fix}" if error.fix else error.message
        except Exception as error:
            # A check is plugged in from outside; whatever it raises is its answer.
            return type(error).__name__
        return None


def health_routes(readiness: Readiness) -> list[Route]:
    """`/health/live` and `/health/ready`."""

    async def serve_live(request: Request) -> Response:
        return Response.json(Health("live"))

    async def serve_ready(request: Request) -> Response:
        health = await readiness.load()
        return Response.json(health, status=200 if health.status == "ready" else 503)

    return [
        Route(
            "GET",
            "/health/live",
            serve_live,
            is_public=True,
            operation_id="getLiveness",
            summary="The process runs",
            tags=("service",),
            responses={200: Health},
        ),
        Route(
            "GET",
            "/health/ready",
            serve_ready,
            is_public=True,
            operation_id="getReadiness",
            summary="The server can do its work; otherwise names what cannot",
            tags=("service",),
            responses={200: Health, 503: Health},
        ),
    ]
