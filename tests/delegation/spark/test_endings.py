"""However a driver ends, its jobs are told, the next one gets another, and nothing of it stays."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from cynosure.common.delegated.settings import ClientTlsSettings, SparkSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.spark import keeper as keeper_module
from cynosure.spark.driver_process import DriverProcess
from cynosure.spark.trust import make_trust
from cynosure.testing.login import make_credential
from tests.delegation.spark.conftest import spark_settings
from tests.delegation.spark.test_runner import wait_for
from tests.delegation.spark.world import Context, Lake, Loop, make_order, make_runner


def find_family(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def find_scratch(family: list[psutil.Process]) -> Path:
    """Where a driver keeps its files."""
    option = "-Djava.io.tmpdir="
    words = [word for each in family for word in read_command(each) if word.startswith(option)]
    return Path(words[0].removeprefix(option))


def read_command(process: psutil.Process) -> list[str]:
    """How it was started; nothing of one that has just ended, as Java's helpers do."""
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def test_a_driver_that_is_killed_costs_one_attempt(local_lake: Lake):
    context = local_lake.context(local_lake.order(TaskType.DATA_COMPACTION, ("ns", "t")))
    local_lake.sql("SELECT 1")  # another test may have ended the one before
    first = local_lake.runner.driver_pid
    assert first
    family = find_family(first)
    assert any("java" in each.name() for each in family)

    async def kill() -> None:
        running = asyncio.create_task(local_lake.runner.run("test-slow", {}, context))
        await wait_for(lambda: bool(context.reported))
        os.kill(first, signal.SIGKILL)
        with pytest.raises(Unavailable, match="driver ended"):
            await running
        await wait_for(lambda: not any(map(is_alive, family)))

    local_lake.loop.run(kill())

    assert local_lake.sql("SELECT 1") == [(1,)]
    assert local_lake.runner.driver_pid != first


def test_a_driver_whose_trust_cannot_be_made_leaves_no_process(tmp_path: Path):
    tls = ClientTlsSettings(ca=tmp_path / "gone.pem")

    async def start() -> None:
        driver = DriverProcess(
            SparkSettings(master="local[1]"),
            kind="",
            jobs={},
            java_options=lambda scratch: make_trust(tls, scratch),
        )
        with pytest.raises(Misconfigured, match="TLS files"):
            await driver.start()
        assert driver.pid is not None
        assert not psutil.pid_exists(driver.pid)
        assert not driver.scratch.exists()

    asyncio.run(start())


def test_a_java_that_is_killed_is_replaced_too(local_lake: Lake):
    local_lake.sql("SELECT 1")
    first = local_lake.runner.driver_pid
    assert first
    family = find_family(first)
    next(each for each in family if "java" in each.name()).kill()

    async def wait() -> None:
        await wait_for(lambda: not any(map(is_alive, family)))
        await wait_for(lambda: local_lake.runner.driver_pid is None)

    local_lake.loop.run(wait())


PARENT = """
import asyncio, sys
from cynosure.common.errors import NotFound
from tests.delegation.spark.conftest import spark_settings
from tests.delegation.spark.world import Context, make_order, make_runner
from cynosure.common.delegated.vocabulary import TaskType

async def main():
    class Nobody:
        client_id, secret = "a", "b"
    runner = make_runner(spark_settings(), "http://127.0.0.1:1", Nobody)
    order = make_order("c", TaskType.DATA_COMPACTION, ("a", "b"))
    try:
        await runner.run("nothing", {}, Context(order, None, runner))
    except NotFound:
        print(runner.driver_pid, flush=True)
    await runner.run("test-slow", {}, Context(order, None, runner))

asyncio.run(main())
"""


def test_nothing_outlives_a_service_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        try:
            family = find_family(int(parent.stdout.readline()))
            scratch = find_scratch(family)
            assert scratch.is_dir()
        finally:
            parent.kill()
    end = time.monotonic() + 60
    while any(map(is_alive, family)) or scratch.exists():
        assert time.monotonic() < end, "something of the driver is still there"
        time.sleep(0.05)


def test_a_folder_without_jars_is_told(loop: Loop, tmp_path: Path):
    order = make_order("c", TaskType.DATA_COMPACTION, ("a", "b"))

    async def lack() -> None:
        runner = make_runner(spark_settings(jars=tmp_path), "http://127.0.0.1:1", make_credential())
        with pytest.raises(Misconfigured, match="jar"):
            await runner.run("nothing", {}, Context(order, None, runner))
        assert runner.driver_pid is None
        await runner.close()

    loop.run(lack())


class Driver:
    """Takes the place of a process."""

    made: ClassVar[list["Driver"]] = []

    def __init__(self, *_: object, **__: object) -> None:
        self.is_gone = False
        self.pid = len(self.made) + 1
        self.may_end = asyncio.Event()
        self.made.append(self)

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def run(self, *_: object, **__: object) -> dict[str, int]:
        await self.may_end.wait()
        return {"pid": self.pid}

    async def close(self) -> None:
        self.is_gone = True


def test_a_driver_that_nobody_uses_ends_and_one_that_works_stays(loop: Loop, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(keeper_module, "DriverProcess", Driver)
    order = make_order("c", TaskType.DATA_COMPACTION, ("a", "b"))
    settings = spark_settings(idle_timeout=timedelta(milliseconds=1))

    async def work() -> None:
        runner = make_runner(settings, "http://127.0.0.1:1", make_credential())
        context = Context(order, None, runner)
        jobs = [asyncio.create_task(runner.run("nothing", {}, context)) for _ in range(2)]
        await wait_for(lambda: runner.driver_pid is not None)
        await asyncio.sleep(0.1)
        assert runner.driver_pid == 1
        Driver.made[0].may_end.set()
        assert await asyncio.gather(*jobs) == [{"pid": 1}, {"pid": 1}]
        await wait_for(lambda: Driver.made[0].is_gone)
        again = asyncio.create_task(runner.run("nothing", {}, context))
        await wait_for(lambda: len(Driver.made) == 2)
        Driver.made[1].may_end.set()
        assert await again == {"pid": 2}
        await runner.close()
        assert Driver.made[1].is_gone

    loop.run(work())
