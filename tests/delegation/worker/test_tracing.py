"""One trace from whoever ordered a task to the attempt at it, and from there to what the job calls."""

import pytest

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
from cynosure.delegation.jobs.port import JobContext
from cynosure.testing.small_delegation import SmallDelegation, make_order
from tests.common.telemetry.collector import run_collector

pytestmark = pytest.mark.anyio
TRACE = "0af7651916cd43dd8448eb211c80319c"


async def test_an_attempt_goes_on_with_the_trace_of_its_order(small: SmallDelegation) -> None:
    async def step(context: JobContext) -> ExecutionResult:
        with span("job.call"):
            return ExecutionResult()

    small.job.script = [step]
    with run_collector() as collector:
        stop = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="test")
        try:
            await small.service.submit(make_order(traceparent=f"00-{TRACE}-b7ad6b7169203331-01"))
            await small.start_worker()
            await small.settle()
        finally:
            stop()
        spans = {each.name: each for each in collector.spans()}

    attempt, call = spans["delegation.attempt"], spans["job.call"]
    assert attempt.trace_id.hex() == call.trace_id.hex() == TRACE
    assert attempt.parent_span_id.hex() == "b7ad6b7169203331"
    assert call.parent_span_id == attempt.span_id
    told = {each.key: each.value.string_value for each in attempt.attributes}
    assert (told["type"], told["outcome"]) == ("TABLE_PURGE", "success")
