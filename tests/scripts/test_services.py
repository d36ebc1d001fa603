"""The services script, on services of its own."""

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import boto3
import psutil
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from cynosure.testing.s3_servers import VARIABLES, S3Server, parse_s3_server

SCRIPT = Path(__file__).parents[2] / "scripts" / "services"
SERVICE_OF = {"seaweedfs": "s3", "minio": "minio", "no-sts": "s3-without-sts"}
WRONG = [{"aws_access_key_id": "ELSE"}, {"aws_secret_access_key": "else"}]


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

    def s3(self, name: str) -> S3Server:
        service = SERVICE_OF[name]
        return parse_s3_server(name, self.variable(service, VARIABLES[name]))

    def variable(self, service: str, expected: str) -> str:
        code, output = self.run("env", service)
        assert code == 0, output
        name, _, value = output.strip().partition("=")
        assert name == expected
        return value

    def server_pid(self) -> int:
        (pid_file,) = self.home.glob("postgres-*/data/postmaster.pid")
        return int(pid_file.read_text().split()[0])

    def s3_pid(self, name: str) -> int:
        return int((self.home / SERVICE_OF[name] / "pid").read_text())

    def seen(self) -> list[object]:
        """What must not change while everything runs."""
        of_s3 = [(self.s3(name), self.s3_pid(name)) for name in SERVICE_OF]
        return [self.url, self.server_pid(), *of_s3]

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
    before = running.seen()
    assert running.run("start")[0] == 0
    assert running.seen() == before


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


def client(server: S3Server, service: str = "s3", **changes: str) -> object:
    keys = {
        "aws_access_key_id": server.access_key_id,
        "aws_secret_access_key": server.secret_access_key,
    }
    once = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    place = {"endpoint_url": server.endpoint, "region_name": server.region, "config": once}
    return boto3.client(service, **place, **(keys | changes))


@pytest.fixture(params=SERVICE_OF)
def s3_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def s3(services: Services, s3_name: str) -> S3Server:
    code, output = services.run("start", SERVICE_OF[s3_name])
    assert code == 0, output
    return services.s3(s3_name)


def test_s3_takes_and_gives_objects_and_refuses_wrong_keys(s3: S3Server):
    for bucket in (s3.bucket, s3.other_bucket):
        client(s3).put_object(Bucket=bucket, Key="a/b", Body=b"x")

        assert client(s3).get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"x"
        for wrong in WRONG:
            with pytest.raises(ClientError) as refused:
                client(s3, **wrong).get_object(Bucket=bucket, Key="a/b")
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_s3_listens_on_loopback_only_and_not_on_our_ports(services: Services, s3: S3Server):
    process = psutil.Process(services.s3_pid(s3.name))
    heard = [one.laddr for one in process.net_connections("tcp") if one.status == "LISTEN"]

    ports = {address.port for address in heard}
    assert len(ports) == (1 if s3.name == "minio" else 8)
    assert {address.ip for address in heard} <= {"127.0.0.1", "::1"}
    assert all(20_000 <= port < 30_000 for port in ports)


def test_keys_of_s3_are_readable_by_their_owner_only(services: Services, s3: S3Server):
    home = services.home / SERVICE_OF[s3.name]
    files = [path for path in home.glob("*.json") if s3.secret_access_key in path.read_text()]

    assert home / "settings.json" in files
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert home.stat().st_mode & 0o777 == 0o700
    assert s3.secret_access_key not in " ".join(psutil.Process(services.s3_pid(s3.name)).cmdline())


def test_credentials_are_given_where_there_is_a_token_service(s3: S3Server):
    role = s3.role_arn or "arn:aws:iam::000000000000:role/none"

    def ask(**changes: str) -> dict[str, object]:
        return client(s3, "sts", **changes).assume_role(RoleArn=role, RoleSessionName="tests")

    if s3.has_sts:
        assert ask()["Credentials"]["SessionToken"]
    else:
        with pytest.raises(ClientError) as absent:
            ask()
        assert absent.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    for wrong in WRONG:
        with pytest.raises(ClientError) as refused:
            ask(**wrong)
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@pytest.mark.parametrize("s3_name", ["seaweedfs", "minio"], indirect=True)
def test_a_killed_s3_server_is_noticed_and_started_again_with_its_address(services: Services, s3: S3Server):
    pid, service = services.s3_pid(s3.name), SERVICE_OF[s3.name]
    client(s3).put_object(Bucket=s3.bucket, Key="kept", Body=b"x")
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([process for process in psutil.process_iter() if process.pid == pid], timeout=30)

    code, output = services.run("status", service)
    assert (code, f"{service}: stopped" in output) == (1, True)
    assert services.run("start", service)[0] == 0

    assert services.s3(s3.name) == s3
    assert services.s3_pid(s3.name) != pid
    assert client(s3).get_object(Bucket=s3.bucket, Key="kept")["Body"].read() == b"x"


def test_a_server_that_runs_with_other_options_is_started_anew(services: Services):
    before, server = services.s3_pid("minio"), services.s3("minio")
    (services.home / "minio" / "launched").write_text("others")

    assert services.run("start", "minio")[0] == 0

    assert services.s3_pid("minio") != before
    assert services.s3("minio") == server


def test_a_stopped_server_that_has_grown_large_begins_anew(services: Services):
    server = services.s3("minio")
    services.run("stop", "minio")
    large = services.home / "minio" / "data" / server.bucket / "large"
    with large.open("wb") as file:
        file.truncate(3 * 1024**3)  # takes no space

    assert services.run("start", "minio")[0] == 0

    assert not large.exists()
    client(server).put_object(Bucket=server.bucket, Key="a", Body=b"x")


def test_a_program_that_cannot_be_built_is_reported_with_what_to_do(tmp_path: Path):
    # A Go that always fails stands for a machine without a network.
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\ntest $1 = version && echo go version go1.99 || { echo no network; exit 1; }\n")
    go.chmod(0o755)
    fresh = Services(tmp_path / "home")
    fresh._env |= {
        "CYNOSURE_CACHE_DIR": str(tmp_path / "cache"),
        "PATH": f"{go.parent}:{os.environ['PATH']}",
    }

    code, output = fresh.run("start", "minio")

    assert code == 1
    assert "minio cannot be built" in output
    assert "go install" in output
    assert "no network" in (tmp_path / "cache" / "programs" / "minio.log").read_text()


# --- Azure ---------------------------------------------------------------------------------------------


def azure_address(services: Services) -> tuple[int, Path]:
    parts = urlsplit(services.variable("azure", "CYNOSURE_TEST_AZURE"))
    assert parts.scheme == "https"
    return parts.port or 0, Path(parse_qs(parts.query)["ca"][0])


def test_azure_speaks_https_with_a_certificate_of_its_own_on_loopback_only(services: Services):
    assert services.run("start", "azure")[0] == 0
    port, certificate = azure_address(services)
    context = ssl.create_default_context(cafile=certificate)
    pid = int((services.home / "azure" / "pid").read_text())

    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as server,
    ):
        assert server.version() == "TLSv1.3"
    with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", port)) as plain:
        ssl.create_default_context().wrap_socket(plain, server_hostname="127.0.0.1")
    listening = [
        each.laddr for each in psutil.Process(pid).net_connections("inet") if each.status == "LISTEN"
    ]
    assert [(each.ip, each.port) for each in listening] == [("127.0.0.1", port)]
    for secret in ("certificate.key", "settings.json"):
        assert (services.home / "azure" / secret).stat().st_mode & 0o077 == 0


def test_a_killed_azure_server_is_started_again_with_its_address(services: Services):
    services.run("start", "azure")
    before = azure_address(services)

    os.kill(int((services.home / "azure" / "pid").read_text()), signal.SIGKILL)
    code, output = services.run("start", "azure")

    assert code == 0, output
    assert azure_address(services) == before
