import asyncio
import os
import signal
import subprocess
import sys

import psutil
import pytest

pytestmark = pytest.mark.anyio

UP = {"command": ("up",)}


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def wait_until(condition, timeout_s: float = 20.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.02)


def children_of(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_up_starts_everything_says_where_and_stops_it_all(serve, http, number) -> None:
    served = await serve(**UP)
    (catalog,) = children_of(served.process.pid)

    answer = await http.get(f"{served.url}/health/ready")
    os.kill(served.process.pid, number)
    code = await served.process.wait_exit()

    assert answer.status_code == 200
    assert served.url in served.process.log()
    assert str(served.data) in served.process.log()
    assert code == 0
    assert is_gone(catalog)


async def test_a_crashed_service_is_started_again(serve, http) -> None:
    served = await serve(**UP)
    (catalog,) = children_of(served.process.pid)

    os.kill(catalog, signal.SIGKILL)
    await wait_until(lambda: children_of(served.process.pid) not in ([], [catalog]))
    await wait_until(lambda: served.process.log().count("server.ready") >= 2)

    assert (await http.get(f"{served.url}/health/ready")).status_code == 200
    assert await served.process.stop() == 0


async def test_when_up_is_killed_its_services_end_and_it_can_be_started_again_at_once(serve, http) -> None:
    served = await serve(**UP)
    (catalog,) = children_of(served.process.pid)

    served.process.kill9(only_parent=True)
    await served.process.restart()

    assert is_gone(catalog)
    assert (await http.get(f"{served.url}/health/ready")).status_code == 200


async def test_a_second_up_on_the_directory_is_refused_and_the_holder_named(serve) -> None:
    served = await serve(**UP)

    second = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "cynosure", "up", "--data", str(served.data), "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode == 1
    assert f"pid: {served.process.pid}" in second.stderr


async def test_a_service_that_cannot_start_ends_up_with_its_reason(serve, tmp_path) -> None:
    served = await serve(**UP)
    port = served.url.rsplit(":", 1)[1]

    second = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "cynosure", "up", "--data", str(tmp_path / "two"), "--port", port],
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode == 1
    assert "The port is already in use" in second.stderr
    assert "A child process could not start" in second.stderr
    assert "Traceback" not in second.stderr
