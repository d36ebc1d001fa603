"""Real processes, killed and frozen."""

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from cynosure.testing.harness.probes import http_ready, log_ready, tcp_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes, ProcessFailed

pytestmark = pytest.mark.anyio

ECHO_SERVER = """
import asyncio, os, sys

async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line)
        await writer.drain()
    writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready as", os.getpid())
    await server.serve_forever()

asyncio.run(main())
"""

PARENT_OF_A_DAEMON = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("child is", child.pid, flush=True)
time.sleep(600)
"""


async def start_echo(processes: Processes, port: int) -> ManagedProcess:
    return await processes.start(
        "echo", [sys.executable, "-c", ECHO_SERVER, str(port)], ready=tcp_ready(port)
    )


async def echo(port: int, line: bytes = b"hello\n") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line)
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_started_process_is_ready_and_its_log_is_kept(processes: Processes, tmp_path: Path):
    port = processes.reserve_port()
    process = await start_echo(processes, port)
    assert await echo(port) == b"hello\n"
    assert f"ready as {process.pid}" in process.log()
    assert process.log_path == tmp_path / "echo.log"


async def test_kill9_ends_it_and_restart_serves_on_the_same_port(processes: Processes):
    port = processes.reserve_port()
    process = await start_echo(processes, port)
    first = process.pid

    process.kill9()
    assert process.exit_code == -9
    with pytest.raises(ConnectionRefusedError):
        await echo(port)

    await process.restart()
    assert process.pid != first
    assert await echo(port) == b"hello\n"
    assert f"ready as {first}" not in process.log()
    assert f"ready as {first}" in process.log_tail()


async def test_a_running_process_is_killed_by_restart(processes: Processes):
    port = processes.reserve_port()
    process = await start_echo(processes, port)
    first = process.pid
    await process.restart()
    assert not is_alive(first)
    assert await echo(port) == b"hello\n"


async def test_a_frozen_process_answers_only_after_it_goes_on(processes: Processes):
    port = processes.reserve_port()
    process = await start_echo(processes, port)

    process.sigstop()
    asked = asyncio.create_task(echo(port))  # the system accepts for it; nobody answers
    await asyncio.wait([asked], timeout=0.1)
    assert not asked.done()
    assert process.is_running

    process.sigcont()
    assert await asyncio.wait_for(asked, 20) == b"hello\n"


async def test_a_frozen_process_can_be_killed(processes: Processes):
    process = await start_echo(processes, processes.reserve_port())
    process.sigstop()
    process.kill9()
    assert process.exit_code == -9


async def test_stop_asks_politely_and_gives_the_exit_code(processes: Processes):
    program = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); print('on'); time.sleep(600)"
    )
    process = await processes.start("polite", [sys.executable, "-c", program], ready=log_ready("on"))
    assert await process.stop() == 7


async def test_a_process_that_dies_at_start_fails_with_its_log(processes: Processes):
    with pytest.raises(ProcessFailed) as failed:
        await processes.start(
            "broken", [sys.executable, "-c", "raise SystemExit('no such disk')"], ready=log_ready("never")
        )
    assert "no such disk" in str(failed.value)
    assert failed.value.details["exit_code"] == 1


async def test_a_process_that_never_gets_ready_fails_with_its_log(processes: Processes):
    program = "import time; print('still warming up', flush=True); time.sleep(600)"
    process = await processes.start("slow", [sys.executable, "-c", program], ready=log_ready("still"))
    with pytest.raises(ProcessFailed, match="still warming up"):
        await process.wait_until(log_ready("ready"), timeout_s=0)


async def test_half_a_line_is_not_read_as_ready(processes: Processes):
    program = (
        "import os, time; os.write(1, b'child is '); time.sleep(0.3); os.write(1, b'7\\n'); time.sleep(600)"
    )
    process = await processes.start("halting", [sys.executable, "-c", program], ready=log_ready("child is"))
    assert process.log() == "child is 7\n"


async def test_killing_what_has_already_ended_is_an_error(processes: Processes):
    process = await processes.start("short", [sys.executable, "-c", ""])
    assert await process.wait_exit() == 0
    with pytest.raises(ProcessFailed):
        process.kill9()


async def test_children_outside_the_group_die_with_kill9(processes: Processes):
    process = await processes.start(
        "parent", [sys.executable, "-c", PARENT_OF_A_DAEMON], ready=log_ready("child is")
    )
    child = int(process.log().split()[-1])
    process.kill9()
    assert not is_alive(child)


async def test_orphans_are_gone_when_the_test_ends(tmp_path: Path):
    with Processes(tmp_path) as processes:
        process = await processes.start(
            "parent", [sys.executable, "-c", PARENT_OF_A_DAEMON], ready=log_ready("child is")
        )
        child = int(process.log().split()[-1])
        process.kill9(only_parent=True)
        assert is_alive(child)
    assert not is_alive(child)


async def test_processes_die_with_a_killed_test_run(processes: Processes, tmp_path: Path):
    program = f"""
    import asyncio, sys, time
    from pathlib import Path
    from cynosure.testing.harness.processes import Processes

    processes = Processes(Path({str(tmp_path)!r}))
    process = asyncio.run(processes.start("inner", [sys.executable, "-c", "import time; time.sleep(600)"]))
    print("inner is", process.pid, flush=True)
    time.sleep(600)
    """
    run = await processes.start(
        "run", [sys.executable, "-c", textwrap.dedent(program)], ready=log_ready("inner is")
    )
    inner = psutil.Process(int(run.log().split()[-1]))

    run.kill9(only_parent=True)

    # Not a child of this process, so there is nothing to wait on but its disappearance.
    await asyncio.to_thread(psutil.wait_procs, [inner], 20)
    assert not is_alive(inner.pid)


async def test_a_reserved_port_is_given_to_nobody_else(processes: Processes):
    port = processes.reserve_port()
    # Without SO_REUSEADDR, as a stranger would: the reservation refuses it.
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))


async def test_http_probe_waits_for_the_status(processes: Processes, tmp_path: Path):
    (tmp_path / "www").mkdir()
    port = processes.reserve_port()
    command = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    process = await processes.start(
        "web", command, cwd=tmp_path / "www", ready=http_ready(f"http://127.0.0.1:{port}/")
    )
    assert not await http_ready(f"http://127.0.0.1:{port}/absent")(process)
    assert await http_ready(f"http://127.0.0.1:{port}/absent", status=404)(process)


def test_a_failing_test_shows_the_logs_of_its_processes(tmp_path: Path):
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent("""
        import sys, pytest
        from cynosure.testing.harness.probes import log_ready
        pytest_plugins = ["cynosure.testing.harness.fixtures"]

        @pytest.mark.anyio
        async def test_it(processes):
            teller = [sys.executable, "-c", "print('a clue')"]
            await processes.start("teller", teller, ready=log_ready("clue"))
            assert False
        """)
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-k",
        "asyncio",
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 1
    assert "log of teller" in done.stdout
    assert "a clue" in done.stdout


async def test_a_failure_is_shown_with_the_logs_of_those_that_started_and_of_those_that_did_not(
    processes: Processes,
):
    started = await processes.start("one", [sys.executable, "-c", "print('hello')"])
    await started.wait_exit()
    with pytest.raises(FileNotFoundError):
        await processes.start("none", ["/no/such/program"])

    described = [process.describe() for process in processes.all]

    assert described == [(f"log of one, pid {started.pid}", "hello"), ("log of none, never started", "")]
