"""One trace from the statement, over the broker's stream, to the scan on an executor."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
from cynosure.query.scan.port import ScanWatch
from cynosure.query.scan_task import ScanTask
from cynosure.query.worker.tracing import VARIABLE
from cynosure.testing.small_broker import SmallBroker, make_order
from tests.common.telemetry.collector import Collector, run_collector

pytestmark = pytest.mark.anyio

EXECUTOR = """
import sys, msgspec
from cynosure.common.telemetry import tracing
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import FragmentOrder, read_fragments
from cynosure.testing.small_broker import number_batches, scan_files
order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=FragmentOrder)
batches = read_fragments(order, number_batches(1), attempt=Attempt(), scan=scan_files)
rows = sum(each.num_rows for each in batches)
print(rows, tracing.is_tracing(), any(name.startswith("opentelemetry") for name in sys.modules))
if tracing._tracing is not None:
    tracing._tracing.close()
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with run_collector() as running:
        yield running


def scan_elsewhere(order: object, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", EXECUTOR],
        input=msgspec.msgpack.encode(order),
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, **variables},
    )
    return done.stdout.decode().strip()


async def test_a_scan_in_another_process_is_part_of_the_statements_trace(collector: Collector) -> None:
    close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="gateway")
    try:
        async with SmallBroker() as small:
            with span("query.run"):
                query = small.open("q", ["f0"])
            said = await asyncio.to_thread(
                scan_elsewhere, make_order(query, ["f0"]), **{VARIABLE: collector.url}
            )
    finally:
        close()
    assert said == "3 True True"
    spans = {each.name: each for each in collector.spans()}
    run, scan = spans["query.run"], spans["query.scan"]
    assert (scan.trace_id, scan.parent_span_id) == (run.trace_id, run.span_id)
    found = {each.key: each.value for each in scan.attributes}
    assert (found["fragment"].string_value, found["rows"].int_value) == ("f0", 3)


async def test_an_executor_without_a_collector_loads_nothing_for_it(collector: Collector) -> None:
    close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="gateway")
    try:
        async with SmallBroker() as small:
            with span("query.run"):
                query = small.open("q", ["f0"])
            said = await asyncio.to_thread(scan_elsewhere, make_order(query, ["f0"]))
    finally:
        close()
    assert said == "3 False False"
    assert [each.name for each in collector.spans()] == ["query.run"]


async def test_a_failed_scan_leaves_its_kind_in_the_trace_and_nothing_of_its_text(
    collector: Collector,
) -> None:
    def fail(task: ScanTask, watch: ScanWatch) -> Iterator[object]:
        raise ValueError("the-hidden-value")
        yield

    close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="both")
    try:
        async with SmallBroker() as small:
            with span("query.run"):
                query = small.open("q", ["f0"], retries=0)
            with pytest.raises(Exception, match="A scan failed"):
                await small.read(query, "f0", scan=fail)  # type: ignore[arg-type]
    finally:
        close()
    [scan] = [each for each in collector.spans() if each.name == "query.scan"]
    assert scan.status.code == 2
    assert {each.key: each.value.string_value for each in scan.attributes}["error.type"] == "ValueError"
    assert not any(b"the-hidden-value" in each.SerializeToString() for each in collector.received)
