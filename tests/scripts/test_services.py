"""The services script, on services of its own."""

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
from urllib.parse import urlsplit

import asyncpg
import obstore
import psutil
import pytest
from obstore.store import S3Store

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
        return self.variable("postgres", "CYNOSURE_TEST_POSTGRES")

    @property
    def s3_url(self) -> str:
        return self.variable("s3", "CYNOSURE_TEST_S3")

    def variable(self, service: str, expected: str) -> str:
        code, output = self.run("env", service)
        assert code == 0, output
        name, _, value = output.strip().partition("=")
        assert name == expected
        return value

    def server_pid(self) -> int:
        (pid_file,) = self.home.glob("postgres-*/data/postmaster.pid")
        return int(pid_file.read_text().split()[0])

    def s3_pid(self) -> int:
        return int((self.home / "s3" / "pid").read_text())

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
    before = (running.server_pid(), running.url, running.s3_pid(), running.s3_url)
    assert running.run("start")[0] == 0
    assert (running.server_pid(), running.url, running.s3_pid(), running.s3_url) == before


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

    assert running.run("start", "postgres")[0] == 0

    assert running.query("SELECT v FROM kept", url) == "7"


def test_a_stopped_server_is_reported_and_starts_again(running: Services):
    code, output = running.run("stop", "postgres")
    assert (code, output.startswith("postgres: stopped")) == (0, True)
    assert running.run("status")[0] == 1
    assert running.run("start", "postgres")[0] == 0
    assert running.run("status")[0] == 0


def test_a_port_taken_meanwhile_is_replaced(running: Services):
    running.run("stop", "postgres")
    old = int(running.url.rpartition(":")[2].split("/")[0])
    with socket.create_server(("127.0.0.1", old)):
        assert running.run("start", "postgres")[0] == 0
        assert running.query("SELECT 1") == "1"


def test_an_unknown_service_is_named(running: Services):
    code, output = running.run("start", "oracle")
    assert code == 1
    assert "unknown service: oracle" in output
    assert "postgres" in output


# --- S3 -----------------------------------------------------------------------------------------------


def bucket(url: str, **changes: str) -> S3Store:
    parts = urlsplit(url)
    keys = {"access_key_id": parts.username, "secret_access_key": parts.password} | changes
    return S3Store(
        parts.path.strip("/"),
        endpoint=f"{parts.scheme}://{parts.hostname}:{parts.port}",
        region="us-east-1",
        client_options={"allow_http": True},
        **keys,
    )


@pytest.fixture
def s3(services: Services) -> Services:
    code, output = services.run("start", "s3")
    assert code == 0, output
    return services


def test_s3_takes_and_gives_objects_and_refuses_wrong_keys(s3: Services):
    obstore.put(bucket(s3.s3_url), "a/b", b"x")

    assert obstore.get(bucket(s3.s3_url), "a/b").bytes() == b"x"
    for wrong in ({"access_key_id": "ELSE"}, {"secret_access_key": "else"}):
        with pytest.raises(obstore.exceptions.PermissionDeniedError):
            obstore.get(bucket(s3.s3_url, **wrong), "a/b")


def test_s3_listens_on_loopback_only_and_not_on_our_ports(s3: Services):
    heard = [
        one.laddr for one in psutil.Process(s3.s3_pid()).net_connections("tcp") if one.status == "LISTEN"
    ]

    assert len(heard) == 8
    assert {address.ip for address in heard} == {"127.0.0.1"}
    assert all(20_000 <= address.port < 30_000 for address in heard)


def test_the_keys_of_s3_are_readable_by_their_owner_only(s3: Services):
    for name in ("settings.json", "identities.json"):
        assert (s3.home / "s3" / name).stat().st_mode & 0o777 == 0o600
    assert (s3.home / "s3").stat().st_mode & 0o777 == 0o700


def test_a_killed_s3_server_is_noticed_and_started_again_with_its_address(s3: Services):
    url, pid = s3.s3_url, s3.s3_pid()
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([process for process in psutil.process_iter() if process.pid == pid], timeout=30)

    code, output = s3.run("status", "s3")
    assert (code, "s3: stopped" in output) == (1, True)
    assert s3.run("start", "s3")[0] == 0

    assert s3.s3_url == url
    assert s3.s3_pid() != pid
    obstore.put(bucket(url), "again", b"x")
