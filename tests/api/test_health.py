import asyncio

import pytest

from cynosure.api.health import Readiness, health_routes
from cynosure.common.errors import Unavailable

pytestmark = pytest.mark.anyio


async def well() -> None:
    pass


async def test_a_server_without_faults_is_live_and_ready(client_for, manual_clock) -> None:
    readiness = Readiness(manual_clock)
    readiness.register("store", well)
    client = client_for(*health_routes(readiness))

    live, ready = await client.get("/health/live"), await client.get("/health/ready")

    assert (live.status_code, live.json()["status"]) == (200, "live")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")


async def test_what_is_not_ready_is_named_and_liveness_does_not_care(client_for, manual_clock) -> None:
    async def down() -> None:
        raise Unavailable("The database does not answer", fix="Start it.", host="db.internal")

    async def broken() -> None:
        raise KeyError("secret")

    async def stuck() -> None:
        await asyncio.Event().wait()

    readiness = Readiness(manual_clock, check_timeout_s=0.01)
    for name, check in {"fine": well, "store": down, "keys": broken, "spark": stuck}.items():
        readiness.register(name, check)
    client = client_for(*health_routes(readiness))

    ready, live = await client.get("/health/ready"), await client.get("/health/live")

    assert ready.status_code == 503
    assert ready.json()["not_ready"] == {
        "store": "The database does not answer. Start it.",
        "keys": "KeyError",
        "spark": "did not answer within 0.01 s",
    }
    assert live.status_code == 200


async def test_checks_run_once_for_many_callers_and_again_when_the_result_is_old(manual_clock) -> None:
    runs = 0
    may_end = asyncio.Event()

    async def slow() -> None:
        nonlocal runs
        runs += 1
        await may_end.wait()

    readiness = Readiness(manual_clock, cache_s=1.0)
    readiness.register("store", slow)

    callers = [asyncio.create_task(readiness.load()) for _ in range(5)]
    await asyncio.sleep(0)
    callers[0].cancel()
    may_end.set()
    results = await asyncio.gather(*callers, return_exceptions=True)
    await readiness.load()
    assert runs == 1
    assert [result.status for result in results[1:]] == ["ready"] * 4

    await manual_clock.advance(1.0)
    await readiness.load()
    assert runs == 2


async def test_a_server_that_shuts_down_is_not_ready(manual_clock) -> None:
    readiness = Readiness(manual_clock)
    readiness.begin_shutdown()

    assert (await readiness.load()).status == "not ready"
