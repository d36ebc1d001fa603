"""OpenTelemetry spans, off by default.

Off, `span` costs a function call and nothing of OpenTelemetry is imported. On, spans go to a collector
over OTLP/HTTP from a thread of their own; a collector that is down loses spans, never requests.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from cynosure.common.errors import Misconfigured
from cynosure.common.telemetry.request_scope import current_scope
from cynosure.common.telemetry.settings import TelemetrySettings

Attribute = str | int | float | bool


class Span(Protocol):
    """A running span."""

    @property
    def traceparent(self) -> str:
        """W3C header for calls to other services; empty when tracing is off."""
        ...

    def set(self, name: str, value: Attribute) -> None:
        """Add an attribute."""
        ...


class _NoSpan:
    """Does nothing, and is its own context manager, so that one instance serves all."""

    traceparent = ""

    def set(self, name: str, value: Attribute) -> None:
        pass

    def __enter__(self) -> "_NoSpan":
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass


_NO_SPAN = _NoSpan()
_tracing: "Tracing | None" = None


def span(name: str, *, traceparent: str = "", **attributes: Attribute) -> AbstractContextManager[Span]:
    """Run a block as a span. `traceparent` is the caller's header, for the first span of a request."""
    return _NO_SPAN if _tracing is None else _tracing.span(name, traceparent, attributes)


def is_tracing() -> bool:
    """Whether spans are made at all, for code that is run for every request."""
    return _tracing is not None


def current_traceparent() -> str:
    """W3C header of the span that runs here, for work that goes on elsewhere; empty when there is none."""
    return "" if _tracing is None else _tracing.traceparent()


def start_tracing(settings: TelemetrySettings, *, service: str) -> Callable[[], None]:
    """Begin to export spans if an endpoint is set. Returns what ends it and sends the rest.

    Call it in each worker process: the exporting thread does not survive a fork.
    """
    global _tracing  # noqa: PLW0603 - spans must be possible from anywhere, as log events are
    if settings.otel_endpoint is None:
        return _nothing
    _tracing = Tracing(settings.otel_endpoint, _headers(settings), service)
    return _tracing.close


def _nothing() -> None:
    pass


def _headers(settings: TelemetrySettings) -> dict[str, str]:
    return {name: value.reveal() for name, value in settings.otel_headers.items()}


class Tracing:
    """The exporter of one process. Not OpenTelemetry's global provider: that one can be set only once."""

    def __init__(self, endpoint: str, headers: dict[str, str], service: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415
            from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
                TraceContextTextMapPropagator,
            )
        except ImportError as error:
            raise Misconfigured(
                "Tracing needs packages that are not installed",
                setting="telemetry.otel_endpoint",
                fix="Run `pip install 'cynosure[telemetry]'`, or remove the setting.",
            ) from error
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", headers=headers)
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": service}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("cynosure")
        self._propagator = TraceContextTextMapPropagator()
        self._failed = Status(StatusCode.ERROR)

    @contextmanager
    def span(self, name: str, traceparent: str, attributes: dict[str, Attribute]) -> Iterator[Span]:
        """See the function `span`."""
        parent = self._propagator.extract({"traceparent": traceparent}) if traceparent else None
        if request_id := current_scope().request_id:
            attributes["cynosure.request_id"] = request_id
        # Of an error only its kind: its text, and its stack's, may hold values of rows.
        with self._tracer.start_as_current_span(
            name, context=parent, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as live:
            try:
                yield _LiveSpan(live, self)
            except Exception as error:
                live.set_attribute("error.type", type(error).__name__)
                live.set_status(self._failed)
                raise

    def traceparent(self) -> str:
        """Of the span that runs here."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent", "")

    def close(self) -> None:
        """Send what is left and stop."""
        global _tracing  # noqa: PLW0603
        if _tracing is self:
            _tracing = None
        self._provider.shutdown()


class _LiveSpan:
    def __init__(self, live: Any, tracing: Tracing) -> None:
        self._live = live
        self._tracing = tracing

    @property
    def traceparent(self) -> str:
        return self._tracing.traceparent()

    def set(self, name: str, value: Attribute) -> None:
        self._live.set_attribute(name, value)
