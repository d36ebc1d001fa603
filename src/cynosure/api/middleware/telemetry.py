"""What every request leaves behind: its id in the answer and in all logs, one access event, metrics.

Metrics are labelled by operation id, never by path: paths hold names, and names are without end.

A maintainer must not break: this runs for every request, so requests are counted in plain numbers that
become metrics once a second and before they are shown, and nothing is formatted unless it is written.
"""

import asyncio
import random
from typing import Literal, TypeAlias

from cynosure.api import asgi
from cynosure.api.asgi import App, Receive, Scope, Send
from cynosure.common.clock import Clock
from cynosure.common.telemetry.logs import Log
from cynosure.common.telemetry.metrics import Counter, Gauge, Histogram, Tally, publish_before_render
from cynosure.common.telemetry.request_scope import RequestScope, choose_request_id, enter_scope, leave_scope
from cynosure.common.telemetry.tracing import is_tracing, span
from cynosure.federation.circles import HEADER, came_through

REQUESTS = Counter(
    "api", "requests", "HTTP requests answered, by operation and status.", labels=("operation", "status")
)
DURATION = Histogram(
    "api",
    "request_seconds",
    "Time from the request's head to the end of its answer, by operation.",
    labels=("operation",),
)
IN_FLIGHT = Gauge("api", "requests_in_flight", "HTTP requests being worked on.")

AccessLog: TypeAlias = Literal["all", "notable", "none"]
"""`notable`: what changes something, fails or takes a second. A cached read costs less than its log line."""

_log = Log(__name__)
_NOTABLE_S = 1.0
PUBLISH_EVERY_S = 1.0
"""How long another worker's `/metrics` may not show a request."""
_NO_OPERATION = "none"
"""Label of requests that matched no route."""
_VIA = HEADER.encode()
_CUT = 0
"""Status of a request that was not answered: its client left, or its answer was cut off."""


class Telemetry:
    """The outermost middleware. All answers inside are sent by `Response.send`, which adds the id."""

    def __init__(
        self,
        app: App,
        clock: Clock,
        rng: random.Random,
        *,
        access_log: AccessLog = "notable",
        publish_every_s: float = PUBLISH_EVERY_S,
    ) -> None:
        self._app = app
        self._publish_every_s = publish_every_s
        self._monotonic_s = clock.monotonic_s
        self._rng = rng
        self._access_log = access_log
        self._tallies: dict[tuple[str, int], Tally] = {}
        self._in_flight = 0
        self._is_publishing_soon = False
        publish_before_render(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application and tell about it."""
        started_s = self._monotonic_s()
        headers = asgi.headers_of(scope)
        incoming = headers.get(b"x-request-id")
        request_id = choose_request_id(None if incoming is None else incoming.decode("latin-1"), self._rng)
        scope[asgi.REQUEST_ID] = request_id
        self._in_flight += 1
        if not self._is_publishing_soon:
            self._publish_soon()
        token = enter_scope(RequestScope(request_id))
        try:
            if is_tracing():
                with span("http.request", traceparent=headers.get(b"traceparent", b"").decode("latin-1")):
                    await self._run(scope, receive, send, headers.get(_VIA))
            else:
                await self._run(scope, receive, send, headers.get(_VIA))
        finally:
            self._in_flight -= 1
            self._finish(scope, self._monotonic_s() - started_s)
            leave_scope(token)

    async def _run(self, scope: Scope, receive: Receive, send: Send, via: bytes | None) -> None:
        if via is None:
            await self._app(scope, receive, send)
            return
        with came_through(via.decode("latin-1")):
            await self._app(scope, receive, send)

    def publish(self) -> None:
        """Bring the metrics up to date."""
        self._is_publishing_soon = False
        IN_FLIGHT.set(self._in_flight)
        for (operation, status), tally in self._tallies.items():
            REQUESTS.inc(tally.count, operation=operation, status=str(status))
            DURATION.add(tally, operation=operation)
        self._tallies.clear()

    def _finish(self, scope: Scope, duration_s: float) -> None:
        operation = scope.get(asgi.OPERATION, _NO_OPERATION)
        status = scope.get(asgi.STATUS, _CUT)
        tally = self._tallies.get((operation, status))
        if tally is None:
            tally = self._tallies[operation, status] = DURATION.tally()
        tally.observe(duration_s)
        if not self._is_publishing_soon:
            self._publish_soon()
        if self._is_told(scope["method"], status, duration_s):
            client = scope.get("client")
            _log.event(
                "request.answered",
                operation=operation,
                method=scope["method"],
                path=scope["raw_path"].decode("latin-1"),
                status=status,
                duration_ms=round(duration_s * 1000, 3),
                client=client[0] if client else "",
            )

    def _publish_soon(self) -> None:
        # A timer, not the next request: after a burst the last of it must show as well.
        self._is_publishing_soon = True
        asyncio.get_running_loop().call_later(self._publish_every_s, self.publish)

    def _is_told(self, method: str, status: int, duration_s: float) -> bool:
        if self._access_log != "notable":
            return self._access_log == "all"
        return not 200 <= status < 400 or duration_s >= _NOTABLE_S or method not in ("GET", "HEAD")
