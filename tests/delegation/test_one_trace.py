"""One trace from the request that drops a table, through its task, to the attempt that deletes its files."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.task_executor import TaskQuery
from cynosure.common.delegated.payload import decode_order
from cynosure.common.delegated.settings import DelegationSettings, ServiceSettings
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
from cynosure.delegation.executors.open import open_executor
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.tables import T, make
from tests.common.telemetry.collector import Collector, run_collector

pytestmark = pytest.mark.anyio
SETTINGS = DelegationSettings(service=ServiceSettings(polling=timedelta(milliseconds=50)))


@pytest.fixture
def collector() -> Iterator[Collector]:
    with run_collector() as running:
        yield running


def never() -> None:
    raise AssertionError("no delegation service is asked for")


async def test_a_purge_is_one_trace_from_the_request_to_the_attempt(
    tmp_path: Path, collector: Collector
) -> None:
    async with open_directory_in(tmp_path, delegation=SETTINGS) as directory:
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, ("ns",), {})
        await make(catalog)
        opening = open_executor(SETTINGS, directory, make_delegated=never, rng=Random(1))  # type: ignore[arg-type]
        async with opening as executor:
            directory.shared.use_executor(executor)
            close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="test")
            try:
                with span("request"):
                    await drop_table(catalog, ROOT, T, is_purge_requested=True)
                [task] = (await executor.list("default", TaskQuery())).tasks
            finally:
                close()

    spans = {each.name: each for each in collector.spans()}
    request, purge, attempt = (
        spans[name] for name in ("request", "catalog.purge_table", "delegation.attempt")
    )
    assert purge.trace_id == attempt.trace_id == request.trace_id
    assert purge.parent_span_id == request.span_id
    assert attempt.parent_span_id == purge.span_id
    assert (decode_order(task.task_payload).traceparent or "").split("-")[1] == request.trace_id.hex()
