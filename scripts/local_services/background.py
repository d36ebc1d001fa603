"""A server of our own that runs on in the background, in a folder of its own, until it is stopped.

A maintainer must not break: whether it runs is known from a lock that the server itself holds, never from a
process id, which another process may have by now.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from local_services.machine import fail, is_free, pick_free_ports, tail, write_private

START_WITHIN_S = 60
MUCH_BYTES = 2 * 1024**3


class Background:
    """One program, its folder, its log, and settings that stay the same from start to start."""

    def __init__(self, title: str, home: Path) -> None:
        self.title = title
        self.home = home

    # --- settings ------------------------------------------------------------------------------

    @property
    def _settings_file(self) -> Path:
        return self.home / "settings.json"

    @property
    def has_settings(self) -> bool:
        """Whether it was ever started."""
        return self._settings_file.exists()

    @property
    def settings(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self._settings_file.read_text())
        return found

    def settle(self, secrets: Mapping[str, str], ports: Sequence[str]) -> None:
        """Keep what is known, and add what is not: secrets as given, ports that are free.

        Ports that another program has taken meanwhile are replaced, unless the server itself has them.
        """
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.home.chmod(0o700)
        before = self.settings if self.has_settings else {}
        kept = {**secrets, **before}
        if not self.is_running():
            lost = [name for name in ports if name not in kept or not is_free(int(kept[name]))]
            kept.update(zip(lost, map(str, pick_free_ports(len(lost))), strict=True))
        if kept != before:
            write_private(self._settings_file, json.dumps(kept))

    def forget_much(self, folder: Path) -> None:
        """Begin anew when runs of tests have left so much that the server would soon be full."""
        if self.is_running() or not folder.exists():
            return
        size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size_bytes > MUCH_BYTES:
            shutil.rmtree(folder)

    # --- running -------------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.home / "log"

    @property
    def _launched_file(self) -> Path:
        return self.home / "launched"

    def is_running(self) -> bool:
        try:
            with (self.home / "alive").open("r") as alive:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def ensure(
        self,
        program: Callable[[], str],
        options: Callable[[], Sequence[str]],
        is_answering: Callable[[], bool],
        *,
        environment: Mapping[str, str] | None = None,
        files: Sequence[Path] = (),
    ) -> None:
        """Leave it running and answering. One that runs with other options or files is started anew."""
        if self.is_running() and self._read_launched() != _fingerprint(options(), files):
            self.stop()
        give_up = time.monotonic() + START_WITHIN_S
        # Asked in every round: a server that was just killed counts as running until it is reaped.
        while not (is_running := self.is_running()) or not is_answering():
            if not is_running:
                self._launch(program(), options(), is_answering, environment or {})
                self._launched_file.write_text(_fingerprint(options(), files))
            elif time.monotonic() > give_up:
                fail(
                    f"{self.title} runs but does not answer; the end of {self._log}:\n{tail(self._log)}",
                    f"To begin anew, run: scripts/services stop {self.home.name}; rm -r {self.home}",
                )
            time.sleep(0.1)

    def _read_launched(self) -> str:
        return self._launched_file.read_text() if self._launched_file.exists() else ""

    def _launch(
        self,
        program: str,
        options: Sequence[str],
        is_answering: Callable[[], bool],
        environment: Mapping[str, str],
    ) -> None:
        # The server inherits this lock and holds it as long as it lives.
        with (self.home / "alive").open("w") as alive, self._log.open("ab") as log:
            fcntl.flock(alive, fcntl.LOCK_EX)
            server = subprocess.Popen(
                [program, *options],
                cwd=self.home,
                env={**_plain_environment(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[alive.fileno()],
                start_new_session=True,
            )
            (self.home / "pid").write_text(str(server.pid))
        give_up = time.monotonic() + START_WITHIN_S
        while not is_answering():
            if server.poll() is not None or time.monotonic() > give_up:
                free_mb = shutil.disk_usage(self.home).free >> 20
                fail(
                    f"{self.title} did not start; the end of {self._log}:\n{tail(self._log)}",
                    f"{free_mb} MB of the disk are free.",
                )
            time.sleep(0.1)

    def stop(self) -> None:
        """End it at once: what it holds is of no value, and asked politely it may take half a minute."""
        if not self.is_running():
            return
        os.kill(int((self.home / "pid").read_text()), signal.SIGKILL)
        while self.is_running():
            time.sleep(0.02)

    def status(self, port: str, is_answering: Callable[[], bool]) -> str:
        """One line for a reader; starts with `running` or `stopped`."""
        if not self.has_settings or port not in self.settings:
            return "stopped: never started"
        where = f"127.0.0.1:{self.settings[port]}, {self.home}"
        return f"running at {where}" if self.is_running() and is_answering() else f"stopped ({where})"


def _fingerprint(options: Sequence[str], files: Sequence[Path]) -> str:
    # Without the program: every checkout has one of its own.
    contents = [path.read_text() if path.exists() else "" for path in files]
    return hashlib.sha256(json.dumps([*options, *contents]).encode()).hexdigest()


def _plain_environment() -> dict[str, str]:
    """Without what users set for clients and servers of theirs: these programs would take keys from it."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
