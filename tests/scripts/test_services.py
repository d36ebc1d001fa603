"""The services script, on a PostgreSQL of its own."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "services"


class Services:
    def __init__(self, home: Path) -> None:
        self.home = home
        self._env = {**os.environ, "CYNOSURE_SERVICES_DIR": str(home)}

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen([sys.executable, str(SCRIPT), *arguments], env=self._env, **pipes)

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.begin(*arguments)
        output, _ = process.communicate()
        return process.returncode, output

    @property
    def url(self) -> str:
        code, output = self.run("env", "postgres")
        assert code == 0, output
        name, _, value = output.strip().partition("=")
        assert name == "CYNOSURE_TEST_POSTGRES"
        return value

    def server_pid(self) -> int:
        (pid_file,) = self.home.glob("postgres-*/data/postmaster.pid")
        return int(pid_file.read_text().split()[0])

    def query(self, statement: str, url: str = "") -> str:
        async def ask() -> str:
            connection = await asyncpg.connect(url or self.url)
            try:
                return str(await connection.fetchval(statement))
            finally:
                await connection.close()

        return asyncio.run(ask())


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    # Not pytest's own folder: as root, the server runs under another account, which cannot enter that.
    home = Path(tempfile.mkdtemp(prefix="cynosure-test-services-", dir="/var/tmp"))
    services = Services(home)
    try:
        starts = [services.begin("start") for _ in range(3)]
        outputs = [start.communicate()[0] for start in starts]
        assert [start.returncode for start in starts] == [0, 0, 0], outputs
        yield services
    finally:
        services.run("stop")
        shutil.rmtree(home)


@pytest.fixture
def running(services: Services) -> Services:
    code, output = services.run("start", "postgres")
    assert code == 0, output
    return services


def test_starting_what_runs_changes_nothing(running: Services):
    pid, url = running.server_pid(), running.url
    assert running.run("start")[0] == 0
    assert (running.server_pid(), running.url) == (pid, url)


def test_it_is_durable_and_listens_on_loopback_only(running: Services):
    shown = {
        name: running.query(f"SHOW {name}") for name in ("fsync", "synchronous_commit", "listen_addresses")
    }
    assert shown == {"fsync": "on", "synchronous_commit": "on", "listen_addresses": "127.0.0.1"}


def test_text_is_not_compared_by_bytes_unless_asked(running: Services):
    assert running.query("SELECT 'a' < 'B'") == "True"
    assert running.query("""SELECT 'a' COLLATE "C" < 'B' COLLATE "C" """) == "False"


def test_a_wrong_password_is_refused(running: Services):
    account, _, place = running.url.rpartition("@")
    with pytest.raises(asyncpg.InvalidPasswordError):
        running.query("SELECT 1", f"{account}x@{place}")


def test_the_password_is_readable_by_its_owner_only(running: Services):
    (password,) = running.home.glob("postgres-*/password")
    assert password.stat().st_mode & 0o777 == 0o600


def test_a_crashed_server_is_started_again_with_its_data_on_its_port(running: Services):
    running.query("CREATE TABLE IF NOT EXISTS kept AS SELECT 7 AS v")
    url = running.url
    os.kill(running.server_pid(), signal.SIGKILL)

    assert running.run("start")[0] == 0

    assert running.query("SELECT v FROM kept", url) == "7"


def test_a_stopped_server_is_reported_and_starts_again(running: Services):
    code, output = running.run("stop")
    assert (code, output.startswith("postgres: stopped")) == (0, True)
    assert running.run("status")[0] == 1
    assert running.run("start")[0] == 0
    assert running.run("status")[0] == 0


def test_a_port_taken_meanwhile_is_replaced(running: Services):
    running.run("stop")
    old = int(running.url.rpartition(":")[2].split("/")[0])
    with socket.create_server(("127.0.0.1", old)):
        assert running.run("start")[0] == 0
        assert running.query("SELECT 1") == "1"


def test_an_unknown_service_is_named(running: Services):
    code, output = running.run("start", "oracle")
    assert code == 1
    assert "unknown service: oracle" in output
    assert "postgres" in output
