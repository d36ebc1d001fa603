"""What every request leaves behind: its id in the answer and in all logs, one access event, metrics.

Metrics are labelled by operation id, never by path: paths hold names, and names are without end.

A maintainer must not break: this runs for every request; series are looked up once per operation and
status, and nothing is formatted unless it is written.
"""

import random
from typing import Any, Literal, TypeAlias

from cynosure.api import asgi
from cynosure.api.asgi import App, Message, Receive, Scope, Send
from cynosure.common.clock import Clock
from cynosure.common.telemetry.logs import Log
from cynosure.common.telemetry.metrics import Counter, Gauge, Histogram
from cynosure.common.telemetry.request_scope import RequestScope, choose_request_id, enter_scope, leave_scope
from cynosure.common.telemetry.tracing import span

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
_NO_OPERATION = "none"
"""Label of requests that matched no route."""
_CUT = 0
"""Status of a request that was not answered: its client left, or its answer was cut off."""


class Telemetry:
    """The outermost middleware."""

    def __init__(
        self, app: App, clock: Clock, rng: random.Random, *, access_log: AccessLog = "notable"
    ) -> None:
        self._app = app
        self._monotonic_s = clock.monotonic_s
        self._rng = rng
        self._access_log = access_log
        self._series: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._in_flight = IN_FLIGHT.series({})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application and tell about it."""
        started_s = self._monotonic_s()
        incoming, traceparent = _find_ids(scope)
        request_id = choose_request_id(incoming, self._rng)
        scope[asgi.REQUEST_ID] = request_id
        status = _CUT

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode("ascii")))
            await send(message)

        if self._in_flight is not None:
            self._in_flight.inc()
        token = enter_scope(RequestScope(request_id))
        try:
            with span("http.request", traceparent=traceparent):
                await self._app(scope, receive, send_with_id)
        finally:
            self._finish(scope, status, self._monotonic_s() - started_s)
            leave_scope(token)

    def _finish(self, scope: Scope, status: int, duration_s: float) -> None:
        operation = scope.get(asgi.OPERATION, _NO_OPERATION)
        series = self._series.get((operation, status))
        if series is None:
            series = (
                REQUESTS.series({"operation": operation, "status": str(status)}),
                DURATION.series({"operation": operation}),
            )
            self._series[operation, status] = series
        counter, histogram = series
        if counter is not None:
            counter.inc()
            histogram.observe(duration_s)
            self._in_flight.dec()
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

    def _is_told(self, method: str, status: int, duration_s: float) -> bool:
        if self._access_log != "notable":
            return self._access_log == "all"
        return not 200 <= status < 400 or duration_s >= _NOTABLE_S or method not in ("GET", "HEAD")


def _find_ids(scope: Scope) -> tuple[str | None, str]:
    request_id: str | None = None
    traceparent = ""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            request_id = value.decode("latin-1")
        elif name == b"traceparent":
            traceparent = value.decode("latin-1")
    return request_id, traceparent
