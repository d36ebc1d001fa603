"""What breaks while a statement runs costs time or an error, and never a row."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from cynosure.testing.harness.faults import Delay
from cynosure.testing.query_server import API
from tests.query.faults.scene import EXPECTED, SHUFFLED, FaultScene, is_fast, soon, wait_until
from tests.query.faults.searching import Search
from tests.query.faults.short_tokens import LIFE_S

pytestmark = pytest.mark.anyio
slow = pytest.mark.skipif("CYNOSURE_SOAK_GOVERNED" not in os.environ, reason="./dev soak governed")


async def test_a_statement_is_read_by_both_executors(scene: FaultScene) -> None:
    before = len(scene.executors_of_tasks())
    _, answer = await scene.begin_reading(1.0)

    async def are_both_reading() -> bool:
        executors = scene.cluster.executors()
        has_scan = scene.scans if scene.leaf == "isolated" else scene.is_reading
        return len(executors) == 2 and all(has_scan(each) for each in executors)

    await wait_until(are_both_reading, "two executors that read")
    assert not answer.done()
    scene.proxy.clear()
    assert await answer == EXPECTED

    async def is_written() -> bool:
        return len(set(scene.executors_of_tasks()[before:])) == 2

    # Events are written behind the statement.
    await wait_until(is_written, "the events of their tasks")


async def test_an_executor_that_is_killed_while_it_reads_costs_no_row(scene: FaultScene) -> None:
    _, answer = await scene.begin_reading()
    reading = [each for each in scene.cluster.executors() if scene.is_reading(each)]
    reading[0].kill()
    assert not answer.done(), "it was read already"
    assert await answer == EXPECTED
    assert [each for each in scene.events() if each["Event"] == "SparkListenerExecutorRemoved"]


async def test_an_executor_on_which_every_scan_dies_costs_no_row(isolated: FaultScene) -> None:
    scene = isolated
    _, answer = await scene.begin_reading(0.2)
    sick, killed = scene.cluster.executors()[0], 0
    while not answer.done():
        for each in scene.scans(sick):
            each.kill()
            killed += 1
        await asyncio.sleep(0.05)
    assert await answer == EXPECTED
    assert killed > 2, "it was asked again and again"


@slow
async def test_a_store_that_drops_connections_costs_no_row(scene: FaultScene) -> None:
    _, answer = await scene.begin_reading()
    scene.proxy.refuse(2)
    scene.proxy.cut_all()
    assert await answer == EXPECTED


async def test_a_store_that_stays_away_is_an_error_that_says_so(scene: FaultScene) -> None:
    failed_before = await scene.metric("scan_fragments", outcome="failed")
    _, answer = await scene.begin_reading()
    await scene.proxy.stop()
    failed = await answer
    assert isinstance(failed, dict), failed
    assert failed["type"] == "ServiceUnavailableException", failed
    assert "does not answer" in failed["message"]
    if scene.leaf == "isolated":
        assert failed["details"]["attempts"] == 3
        assert await scene.metric("scan_fragments", outcome="failed") >= failed_before + 3
    await scene.proxy.start()
    scene.proxy.clear()
    assert await scene.ids() == EXPECTED


async def test_a_store_that_is_silent_on_the_fast_path_alone_costs_no_row_and_no_worker(
    isolated: FaultScene,
) -> None:
    scene = isolated
    stuck_before = await scene.metric("scan_fragments", outcome="stuck")
    silent = scene.proxy.add(Delay(request_s=300.0), when=is_fast, times=None)
    assert await scene.ids() == EXPECTED
    assert silent.hits, "no file is read on the fast path"
    assert await scene.metric("scan_fragments", outcome="stuck") == stuck_before
    assert await scene.metric("scan_workers_healthy") == 2


async def test_credentials_that_end_in_the_middle_are_renewed(isolated: FaultScene) -> None:
    scene = isolated
    keys = scene.keys_of_reads()
    scene.enforce_expiry()
    before = await scene.metric("credential_refreshes", outcome="renewed")
    _, answer = await scene.begin_reading(0.5)
    assert await answer == EXPECTED
    assert await scene.metric("credential_refreshes", outcome="renewed") > before
    assert len(keys) > 1, "all files were read with the same credentials"


@slow
async def test_a_driver_that_is_killed_is_an_error_and_the_next_statement_gets_a_new_one(
    scene: FaultScene,
) -> None:
    _, answer = await scene.begin_reading()
    killed = scene.driver()
    killed.kill()
    failed = await answer
    assert isinstance(failed, dict), failed
    assert failed["type"] == "ServiceUnavailableException", failed
    scene.proxy.clear()

    async def is_answered() -> bool:
        # As the error says: until it is noticed that the driver is gone, statements may meet the old one.
        return await scene.try_ids() == EXPECTED

    await wait_until(is_answered, "an answer of the next driver")
    assert scene.driver().pid != killed.pid


@slow
async def test_credentials_that_end_in_the_middle_of_a_native_scan_are_an_error_that_says_so(
    scene: FaultScene,
) -> None:
    if scene.leaf != "native":
        pytest.skip("of the native leaf only")
    refused = scene.enforce_expiry()
    # Eight files on two executors: longer than a session lives.
    _, answer = await scene.begin_reading(LIFE_S / 2, when=scene.is_small)
    failed = await answer
    assert refused.hits, "the session did not end in the middle"
    assert isinstance(failed, dict), "rows were read with a session that had ended"
    assert "not renewed" in failed["fix"], failed
    scene.proxy.clear()
    assert await scene.ids() == EXPECTED


@pytest.fixture
async def in_process(isolated: FaultScene) -> AsyncIterator[FaultScene]:
    """The same table, through a gateway that reads itself."""
    settings = {
        "QUERY__LOCAL_EXECUTION": "on",
        "QUERY__SPARK__ENABLED": "off",
        "STORAGE__RETRIES": "2",
        # A scan that waits for a silent store goes on for much longer than its statement may.
        "STORAGE__OPERATION_TIMEOUT": "60s",
        "STORAGE__STALL_TIMEOUT": "60s",
    }
    # Of another name when it is run once more.
    name = f"in-process-{len(isolated.query.processes.all)}"
    local = await isolated.query.start_another(name, settings)
    yield replace(isolated, query=local)
    await local.gateway.stop()


async def test_a_store_that_goes_away_and_comes_back_costs_a_gateway_that_reads_itself_no_row(
    in_process: FaultScene,
) -> None:
    _, answer = await in_process.begin_reading()
    await in_process.proxy.stop()
    failed = await answer
    assert isinstance(failed, dict), failed
    assert failed["message"] == "The storage does not answer or fails"
    await in_process.proxy.start()
    in_process.proxy.clear()
    _, answer = await in_process.begin_reading()
    in_process.proxy.refuse(2)
    in_process.proxy.cut_all()
    assert await answer == EXPECTED


async def test_a_gateway_that_reads_itself_reads_on_the_fast_path(in_process: FaultScene) -> None:
    read = in_process.proxy.add(Delay(), when=is_fast, times=None)
    assert await in_process.ids() == EXPECTED
    assert read.hits


async def test_a_silent_store_holds_no_statement_of_a_gateway_that_reads_itself(
    in_process: FaultScene,
) -> None:
    in_process.hold(120.0)
    with soon():
        failed = await in_process.try_ids(timeout="2s")
    assert isinstance(failed, dict), failed
    assert "longer" in failed["message"]
    in_process.proxy.clear()
    statement, answer = await in_process.begin_reading(120.0)
    async with in_process.query.client(in_process.ann) as http:
        with soon():
            ended = await http.delete(f"{API}/statements/{statement}")
            assert ended.is_success, ended.text
            await answer
    assert (await in_process.state(statement))["state"] == "CANCELED"
    # Nor does it hold whoever comes next, when the store answers again; nor the end of the gateway.
    in_process.proxy.clear()
    assert await in_process.ids() == EXPECTED


async def test_nothing_that_a_scan_knows_is_written_while_it_runs(isolated: FaultScene) -> None:
    """`test_secrets.py` in short."""
    _, answer = await isolated.begin_reading(0.4, sql=SHUFFLED)
    during = Search(isolated)
    found = await asyncio.to_thread(during.everywhere)
    assert await answer == [len(EXPECTED)]
    isolated.proxy.clear()
    after = Search(isolated)
    found |= await asyncio.to_thread(after.in_files)
    assert not found
    during.check_pages()
    after.check_shuffled()
