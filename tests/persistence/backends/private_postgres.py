"""A PostgreSQL server of a test's own, which it may stop, crash and start again."""

import os
import shutil
import subprocess
from pathlib import Path


class PrivatePostgres:
    def __init__(self, directory: Path, port: int) -> None:
        self.port = port
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        self._data = directory / "data"
        self._bin = _find_programs()
        # The server refuses to run as root.
        self._user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        if self._user:
            shutil.chown(directory, "postgres", "postgres")
        # Not synced to disk by initdb: this cluster does not outlive the test.
        self._run(
            "initdb", "--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"
        )

    def start(self) -> None:
        # The log is flushed by who commits, and seldom by the server itself.
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=30"
            " -c wal_writer_delay=10s"
        )
        self._run("pg_ctl", "start", "-w", "-o", options, "-l", str(self._data.parent / "log"))

    def stop(self, how: str = "fast") -> None:
        """`fast` says good-bye to its clients, `immediate` is as good as a crash."""
        self._run("pg_ctl", "stop", "-w", "-m", how)

    def close(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop("immediate")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._bin / program, "-D", self._data, *arguments],
            cwd="/",
            check=False,
            stdin=subprocess.DEVNULL,
            # To a file: the server inherits it, and a pipe would stay open as long as the server runs.
            stdout=(output := (self._data.parent / "output").open("ab")),
            stderr=subprocess.STDOUT,
            **self._user,
        )
        output.close()
        assert done.returncode == 0, (self._data.parent / "output").read_text()


def _find_programs() -> Path:
    """Debian keeps them off the PATH, one directory per version; scripts/services installs them."""
    versioned = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if versioned:
        return versioned[-1]
    found = shutil.which("pg_ctl")
    assert found, "PostgreSQL's programs are not installed; run: scripts/services start postgres"
    return Path(found).resolve().parent
