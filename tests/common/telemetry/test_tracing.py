import subprocess
import sys

import pytest

from cynosure.common.secrets import Secret
from cynosure.common.telemetry.request_scope import request_scope
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
from tests.common.telemetry.collector import run_collector


@pytest.fixture
def collector():
    with run_collector() as server:
        yield server


def attributes(received):
    return {each.key: each.value.string_value or each.value.int_value for each in received.attributes}


def test_spans_reach_a_collector_with_their_parent_request_and_headers(collector):
    settings = TelemetrySettings(otel_endpoint=f"{collector.url}/", otel_headers={"x-api-key": Secret("k")})
    close = start_tracing(settings, service="cynosure-catalog")
    with request_scope(request_id="r1"), span("commit", reference="main") as outer:
        outer.set("attempts", 3)
        with span("swap"):
            pass
    close()

    assert collector.paths == ["/v1/traces"]
    assert collector.keys == ["k"]
    inner, outer = collector.spans()
    assert (inner.name, outer.name) == ("swap", "commit")
    assert inner.parent_span_id == outer.span_id
    assert attributes(outer) == {"reference": "main", "attempts": 3, "cynosure.request_id": "r1"}
    resource = collector.received[0].resource_spans[0].resource
    assert attributes(resource)["service.name"] == "cynosure-catalog"


def test_a_trace_goes_on_from_the_caller_and_to_the_next_service(collector):
    close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="s")
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    with span("request", traceparent=f"00-{trace_id}-b7ad6b7169203331-01") as first:
        onward = first.traceparent
    with span("request", traceparent="garbage") as second:
        other = second.traceparent
    close()

    joined, fresh = collector.spans()
    assert joined.trace_id.hex() == trace_id
    assert joined.parent_span_id.hex() == "b7ad6b7169203331"
    assert onward == f"00-{trace_id}-{joined.span_id.hex()}-01"
    assert other.split("-")[1] == fresh.trace_id.hex() != trace_id


def test_an_error_passes_through_and_marks_the_span(collector):
    close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="s")
    with pytest.raises(ValueError, match="no"), span("commit"):
        raise ValueError("no")
    close()

    (failed,) = collector.spans()
    assert failed.status.code == 2


def test_after_close_spans_cost_nothing_again(collector):
    start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="s")()

    with span("commit") as nothing:
        nothing.set("a", 1)
    assert nothing.traceparent == ""
    assert collector.spans() == []


def test_a_dead_collector_loses_only_spans():
    script = """
import logging, socket
logging.disable()
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
start_tracing(TelemetrySettings(otel_endpoint=f"http://127.0.0.1:{port}"), service="s")
with span("commit"):
    print("served")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr


def test_off_is_the_default_and_imports_nothing():
    script = """
import sys
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
close = start_tracing(TelemetrySettings(), service="s")
with span("commit", reference="main") as off:
    off.set("a", 1)
close()
assert span("a") is span("b")
assert not any(name.startswith("opentelemetry") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_missing_extra_is_refused_with_the_command_that_installs_it():
    script = """
import sys
sys.modules["opentelemetry.sdk"] = None
from cynosure.common.errors import Misconfigured
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
try:
    start_tracing(TelemetrySettings(otel_endpoint="http://127.0.0.1:1"), service="s")
except Misconfigured as refused:
    print(refused.fix)
with span("still off"):
    pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "pip install 'cynosure[telemetry]'" in done.stdout
