"""Rarer and slower faults: `./dev soak governed`."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import obstore
import psutil
import pyarrow as pa
import pytest

from cynosure.testing.harness.faults import Respond
from cynosure.testing.query_server import API, QueryScene
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.query.faults.scene import (
    ALL,
    EXPECTED,
    TABLE,
    FaultScene,
    is_data,
    rows_of,
    soon,
    wait_until,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif("CYNOSURE_SOAK_GOVERNED" not in os.environ, reason="./dev soak governed"),
]


async def test_a_scan_that_stands_still_is_lost_and_read_elsewhere(isolated: FaultScene) -> None:
    scene = isolated
    _, answer = await scene.begin_reading()
    stopped = scene.scans()[0]
    stopped.suspend()
    try:
        assert await answer == EXPECTED
        assert await scene.metric("scan_fragments", outcome="lost") >= 1
    finally:
        with contextlib.suppress(psutil.Error):
            stopped.resume()


async def test_a_gateway_that_is_killed_leaves_nothing_and_takes_the_statement_again(
    scene: FaultScene,
) -> None:
    statement_id, answer = await scene.begin_reading()
    driver = scene.driver()
    scene.query.gateway.kill9(only_parent=True)
    with pytest.raises(httpx.HTTPError):
        await answer

    async def is_gone() -> bool:
        return not driver.is_running() or driver.status() == psutil.STATUS_ZOMBIE

    await wait_until(is_gone, "the end of the driver")
    scene.proxy.clear()
    await scene.query.gateway.restart()
    async with scene.query.client(scene.ann) as http:
        unknown = await http.get(f"{API}/statements/{statement_id}")
    assert unknown.status_code == 404
    assert "send it again" in unknown.json()["error"]["fix"]
    await scene.wait_for_workers()
    assert await scene.ids(ALL, **{"statement-id": statement_id}) == EXPECTED


async def test_a_catalog_that_is_killed_costs_no_statement_that_runs(scene: FaultScene) -> None:
    _, answer = await scene.begin_reading()
    catalog = scene.query.catalog.process
    catalog.kill9()
    try:
        assert await answer == EXPECTED
    finally:
        await catalog.restart()
    assert await scene.ids() == EXPECTED


async def test_credentials_that_cannot_be_renewed_are_an_error_that_says_so(isolated: FaultScene) -> None:
    scene = isolated
    bob = await scene.query.create_user("bob")
    scene.enforce_expiry()
    held = scene.hold(1.0)

    async def has_begun() -> bool:
        return held.hits >= 2

    failing = asyncio.create_task(scene.query.fails(bob, ALL))
    await wait_until(has_begun, "a scan that reads")
    async with scene.query.catalog.client() as http:
        gone = await http.delete("/api/management/v1/principals/bob")
    assert gone.is_success
    failed = await failing
    assert (
        failed["message"] == "The storage refuses what a table is read with" or "refuse" in failed["message"]
    )
    assert await scene.metric("credential_refreshes", outcome="failed") >= 1


async def test_a_file_that_is_not_what_it_was_is_an_error_and_no_row(scene: FaultScene) -> None:
    table = await scene.query.make_table("ns.broken", *(rows_of(file) for file in range(3)))
    minio: S3Server = find_s3_servers()["minio"]
    # Not here: the proxy, which they go through, runs in this thread.
    files = await asyncio.to_thread(lambda: list(table.scan().plan_files()))
    path = files[0].file.file_path
    key = path.removeprefix(f"s3://{minio.bucket}/")
    bucket = minio.open_bucket()
    whole = bytes(obstore.get(bucket, key).bytes())
    # Its end, all of it, the head of its first page. Inside of a page only a checksum would show it.
    for broken in (whole[: len(whole) // 2], bytes(len(whole)), bytes(50) + whole[50:]):
        obstore.put(bucket, key, broken)
        failed = await scene.query.fails(scene.ann, "SELECT id, card FROM lake.ns.broken")
        assert path not in str(failed)
        assert key not in str(failed)
    obstore.put(bucket, key, whole)
    assert len(await scene.ids("SELECT id, card FROM lake.ns.broken")) == 3 * 400


async def test_a_deadline_ends_what_hangs(scene: FaultScene) -> None:
    scene.hold(30.0)  # then the store answers, and without a deadline there would be rows
    with soon():
        failed = await scene.try_ids(timeout="5s")
    assert isinstance(failed, dict), failed
    assert "longer" in failed["message"]


LATE = f"SELECT id, max(card) AS card FROM lake.{TABLE} GROUP BY id"
"""Gives its first row when all is read. Once a row was given, nothing is tried again."""


@pytest.fixture
async def ladder(isolated: FaultScene) -> AsyncIterator[QueryScene]:
    """A gateway that can also read itself, and whose readers ask a store once."""
    settings = {
        "QUERY__LOCAL_EXECUTION": "on",
        "QUERY__SPARK__MASTER": "local[2]",
        # Less than the table has; and what is not much more is read here when Spark cannot.
        "QUERY__DISTRIBUTE_ABOVE": "8KiB",
        "STORAGE__RETRIES": "0",
    }
    other = await isolated.query.start_another("ladder", settings)
    yield other
    await other.gateway.stop()


async def test_a_fragment_is_tried_again_then_read_here_then_an_error(
    scene: FaultScene, ladder: QueryScene
) -> None:
    asked = replace(scene, query=ladder)

    names: list[str] = []

    def is_one(request: Any) -> bool:
        if scene.is_small(request) and not names:
            names.append(request.path.partition("?")[0])
        return bool(names) and is_data(request) and request.path.partition("?")[0] == names[0]

    ids = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(3)]
    once = scene.proxy.add(Respond(503), when=is_one, times=1)
    assert await asked.ids(LATE, **{"statement-id": ids[0]}) == EXPECTED
    assert once.hits == 1
    assert (await asked.state(ids[0]))["engine"] == "spark-isolated"
    assert await asked.metric("fallbacks") == 0

    scene.proxy.clear()
    # A worker on which something failed is asked again when it was heard of.
    await asked.wait_for_workers(1)
    thrice = scene.proxy.add(Respond(503), when=is_one, times=3)
    assert await asked.ids(LATE, **{"statement-id": ids[1]}) == EXPECTED
    assert thrice.hits == 3
    told = await asked.state(ids[1])
    assert (told["engine"], told["reason"]) == ("local", "distribution failed, run locally")
    assert await asked.metric("fallbacks") == 1

    scene.proxy.clear()
    await asked.wait_for_workers(1)
    scene.proxy.add(Respond(503), when=is_one, times=None)
    failed = await asked.try_ids(LATE, **{"statement-id": ids[2]})
    assert isinstance(failed, dict), failed
    assert failed["message"] == "The storage does not answer or fails"
    assert await asked.metric("fallbacks") == 2


async def test_a_scan_that_needs_more_memory_than_it_may_is_an_error(isolated: FaultScene) -> None:
    scene = isolated
    settings = {
        "QUERY__LOCAL_EXECUTION": "on",
        "QUERY__SPARK__ENABLED": "off",
        "QUERY__MEMORY_LIMIT": "64KiB",
        "QUERY__LOCAL__MEMORY_LIMIT": "16MiB",
        "QUERY__SPILL_TO_DISK": "false",
    }
    small = await scene.query.start_another("small", settings)
    try:
        wide = pa.table({"id": pa.array(range(3), pa.int64()), "card": ["x" * 2**20] * 3})
        await scene.query.make_table("ns.wide", wide)
        failed = await small.fails(scene.ann, "SELECT id, card FROM lake.ns.wide")
        assert failed["message"] == "A scan needs more memory than it may have", failed
        assert len(await small.rows(scene.ann, "SELECT id FROM lake.ns.wide")) == 3
    finally:
        await small.gateway.stop()
