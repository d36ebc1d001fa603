import os
import signal

import psutil
import pytest

pytestmark = pytest.mark.anyio

UP = {"command": ("up",)}


async def test_up_says_where_things_are_restarts_what_crashed_and_stops_it_all(
    serve, http, wait_until
) -> None:
    served = await serve(**UP)
    (catalog,) = served.children()
    assert served.url in served.process.log()
    assert str(served.data) in served.process.log()

    os.kill(catalog, signal.SIGKILL)
    await wait_until(lambda: served.children() not in ([], [catalog]))
    await wait_until(lambda: served.process.log().count("server.ready") == 2)
    (catalog,) = served.children()
    assert (await http.get(f"{served.url}/health/ready")).status_code == 200

    os.kill(served.process.pid, signal.SIGINT)
    assert await served.process.wait_exit() == 0
    assert not psutil.pid_exists(catalog)


async def test_when_up_is_killed_its_services_end_and_it_can_be_started_again_at_once(
    serve, http, has_ended
) -> None:
    """I23."""
    served = await serve(**UP)
    (catalog,) = map(psutil.Process, served.children())

    served.process.kill9(only_parent=True)
    await served.process.restart()

    assert has_ended(catalog)
    assert (await http.get(f"{served.url}/health/ready")).status_code == 200


async def test_a_second_up_on_the_directory_or_port_is_refused_with_the_reason(serve, run_cli) -> None:
    served = await serve(**UP)

    same_directory = await run_cli("up", "--data", str(served.data), "--port", "0")
    same_port = await run_cli("up", "--data", "two", "--port", served.port)

    assert same_directory.returncode == 1
    assert f"pid: {served.process.pid}" in same_directory.stderr
    assert same_port.returncode == 1
    assert "The port is already in use" in same_port.stderr
    assert "A child process could not start" in same_port.stderr
    assert "Traceback" not in same_port.stderr
    assert await served.process.stop() == 0
