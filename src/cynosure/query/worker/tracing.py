"""Spans of scans, where the executor's environment names a collector.

    spark.executorEnv.CYNOSURE_TELEMETRY__OTEL_ENDPOINT=http://collector:4318      in query.spark.config

A scan's span belongs to its statement's trace: the broker sends the trace's context with the task.

A maintainer must not break: without that variable nothing of OpenTelemetry is imported; and a scan never
fails because of its span.
"""

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Final

from cynosure.common.errors import Misconfigured
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import Span, is_tracing, span, start_tracing
from cynosure.query.stream.frames import Hello

VARIABLE: Final = "CYNOSURE_TELEMETRY__OTEL_ENDPOINT"
SERVICE: Final = "cynosure-scan"

_log = Log(__name__)


def scan_span(hello: Hello, traceparent: str) -> AbstractContextManager[Span]:
    """The span of one attempt at a fragment; nothing where the statement is not traced."""
    if traceparent and not is_tracing():
        # Not at the start of the daemon that workers are forked from: exporting threads do not survive that.
        _start(os.getpid())
    return span(
        "query.scan",
        traceparent=traceparent,
        query=hello.query_id,
        fragment=hello.fragment_id,
        attempt=hello.attempt,
        worker=hello.worker,
    )


@cache
def _start(_: int) -> None:
    """Once in a process."""
    endpoint = os.environ.get(VARIABLE)
    if endpoint:
        try:
            start_tracing(TelemetrySettings(otel_endpoint=endpoint), service=SERVICE)
        except Misconfigured:
            _log.event("scan.not_traced", level=WARNING)
