"""moto: Amazon's Glue, as far as it keeps databases and tables.

Its program comes with the development packages. It checks neither signatures nor the version that an update
of a table names, so it proves nothing about either.

A maintainer must not break: it listens on loopback and keeps all in memory.
"""

import secrets
import sys

from local_services.background import Background
from local_services.machine import HOME, ask_http, fail


class Moto:
    """One server."""

    name = "glue"

    def __init__(self) -> None:
        self._server = Background("moto", HOME / self.name)

    def start(self) -> None:
        made = {"access_key": secrets.token_hex(10).upper(), "secret_key": secrets.token_hex(20)}
        self._server.settle(made, ("http",))
        self._server.ensure(lambda: sys.executable, self._options, self._is_answering)

    def stop(self) -> None:
        self._server.stop()

    def status(self) -> str:
        return self._server.status("http", self._is_answering)

    def env(self) -> dict[str, str]:
        if not self._server.has_settings:
            fail("glue was never started", "Run: scripts/services start glue")
        found = self._server.settings
        account = f"{found['access_key']}:{found['secret_key']}"
        return {"CYNOSURE_TEST_GLUE": f"http://{account}@127.0.0.1:{found['http']}?region=us-east-1"}

    def _options(self) -> list[str]:
        return ["-m", "moto.server", "-H", "127.0.0.1", "-p", self._server.settings["http"]]

    def _is_answering(self) -> bool:
        return ask_http("GET", f"http://127.0.0.1:{self._server.settings['http']}/moto-api/") == 200
