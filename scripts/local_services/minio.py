"""MinIO: a second opinion on session policies, from another implementation of S3 and its token service.

There is no package of it, so it is built from its sources, once.

A maintainer must not break: it listens on loopback, asks nobody for updates, and has no web page.
"""

import secrets

from local_services import go
from local_services.background import Background
from local_services.machine import HOME, ask_http, fail
from local_services.seaweedfs import BUCKETS, REGION

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
PORTS = ("s3", "console")


class MinIO:
    """One server with one drive. Any role may be assumed: it does not look at the name."""

    name = "minio"

    def __init__(self) -> None:
        self._server = Background("MinIO", HOME / self.name)

    def start(self) -> None:
        program = go.install(MODULE, VERSION)
        made = {"access_key": secrets.token_hex(10).upper(), "secret_key": secrets.token_hex(20)}
        self._server.settle(made, PORTS)
        self._server.forget_much(self._server.home / "data")
        found = self._server.settings
        # On one drive a bucket is a directory.
        for bucket in BUCKETS:
            (self._server.home / "data" / bucket).mkdir(parents=True, exist_ok=True)
        environment = {
            "MINIO_ROOT_USER": found["access_key"],
            "MINIO_ROOT_PASSWORD": found["secret_key"],
            "MINIO_REGION": REGION,
            "MINIO_UPDATE": "off",
            "MINIO_BROWSER": "off",
            "MINIO_CALLHOME_ENABLE": "off",
        }
        self._server.ensure(lambda: str(program), self._options, self._is_answering, environment=environment)

    def stop(self) -> None:
        self._server.stop()

    def status(self) -> str:
        return self._server.status("s3", self._is_answering)

    def env(self) -> dict[str, str]:
        if not self._server.has_settings:
            fail(f"{self.name} was never started", f"Run: scripts/services start {self.name}")
        found = self._server.settings
        account = f"{found['access_key']}:{found['secret_key']}"
        return {
            "CYNOSURE_TEST_MINIO": f"http://{account}@127.0.0.1:{found['s3']}/{BUCKETS[0]}?region={REGION}"
        }

    def _options(self) -> list[str]:
        found, home = self._server.settings, self._server.home
        options = {
            "--certs-dir": str(home / "certs"),
            "--address": f"127.0.0.1:{found['s3']}",
            "--console-address": f"127.0.0.1:{found['console']}",
        }
        return ["server", "--quiet", *(word for pair in options.items() for word in pair), str(home / "data")]

    def _is_answering(self) -> bool:
        return ask_http("GET", f"http://127.0.0.1:{self._server.settings['s3']}/minio/health/cluster") == 200
