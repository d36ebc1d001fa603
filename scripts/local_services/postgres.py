"""One PostgreSQL cluster per major version, made and kept by this script.

A maintainer must not break: tests prove durability on it, so nothing here may trade it for speed.
"""

import os
import re
import secrets
import shutil
import subprocess
import time
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from local_services.machine import (
    HOME,
    IS_ROOT,
    apt_install,
    fail,
    hand_over,
    is_free,
    pick_free_port,
    run,
    tail,
    write_private,
)


class Postgres:
    """One PostgreSQL cluster per major version, with password authentication and fsync on."""

    name = "postgres"
    user = "cynosure"

    # Tests prove durability, so nothing here may trade it for speed. No Unix socket: its path would
    # have to be short, and tests use TCP anyway because the fault proxy does.
    settings: ClassVar = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "200",
        "shared_buffers": "64MB",
        "log_line_prefix": "%m [%p] ",
    }

    def start(self) -> None:
        if not self._find_bin():
            self._install()
        self._initialise()
        self._ensure_answering()
        self._ensure_database()

    def stop(self) -> None:
        if self._find_bin() and self._data.exists() and self._is_running():
            self._run("pg_ctl", "stop", "-D", self._data, "-m", "fast", "-w", "-t", "60")

    def status(self) -> str:
        if not self._find_bin():
            return "stopped: not installed"
        if not self._port_file.exists():
            return "stopped: never started"
        where = f"127.0.0.1:{self._port}, {self._home}"
        is_well = self._is_running() and self._is_answering()
        return f"running at {where}" if is_well else f"stopped ({where})"

    def env(self) -> dict[str, str]:
        if not (self._find_bin() and self._port_file.exists()):
            fail("postgres was never started", "Run: scripts/services start postgres")
        return {
            "CYNOSURE_TEST_POSTGRES": f"postgresql://{self.user}:{self._password}@127.0.0.1:{self._port}/{self.user}"
        }

    # --- where things are ----------------------------------------------------------------------

    def _find_bin(self) -> Path | None:
        """The newest server's programs. Debian keeps them off the PATH, one directory per version."""
        versioned = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "pg_ctl").exists()]
        if versioned:
            return max(versioned, key=lambda path: int(re.sub(r"\D.*", "", path.parent.name) or 0))
        on_path = shutil.which("pg_ctl")
        return Path(on_path).resolve().parent if on_path else None

    @cached_property
    def _major(self) -> int:
        found = re.search(r"(\d+)", self._run("postgres", "--version"))
        return int(found.group(1)) if found else fail("cannot read the version of PostgreSQL")

    @property
    def _home(self) -> Path:
        # Data of one major version is unreadable to the next, so an upgrade starts a new cluster.
        return HOME / f"postgres-{self._major}"

    @property
    def _data(self) -> Path:
        return self._home / "data"

    @property
    def _port_file(self) -> Path:
        return self._home / "port"

    @property
    def _port(self) -> str:
        return self._port_file.read_text().strip()

    @property
    def _password(self) -> str:
        return (self._home / "password").read_text().strip()

    # --- steps ---------------------------------------------------------------------------------

    def _install(self) -> None:
        # Debian's package makes and starts a cluster of its own unless told otherwise; the machine's
        # port 5432 is not ours to take.
        rule = Path("/etc/postgresql-common/createcluster.d/cynosure-services.conf")
        if IS_ROOT:
            rule.parent.mkdir(parents=True, exist_ok=True)
            rule.write_text("create_main_cluster = false\n")
        try:
            apt_install("postgresql")
        finally:
            rule.unlink(missing_ok=True)
        if not self._find_bin():
            fail("PostgreSQL was installed, but pg_ctl is not where it is expected")

    def _initialise(self) -> None:
        if self._data.exists():
            return
        home = self._home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        hand_over(home, "postgres")
        password_file = home / "password"
        write_private(password_file, secrets.token_hex(16))
        readable = home / "password.initdb"
        write_private(readable, self._password)
        hand_over(readable, "postgres")
        fresh = home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)

        # A collation that is not byte order, as most installations have: code that forgets to ask for
        # byte order must fail here and not at a user's.
        collation = ["--locale-provider=icu", "--icu-locale=en-US"] if self._major >= 15 else []
        self._run(
            "initdb", "-D", fresh, f"--username={self.user}", f"--pwfile={readable}",
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", *collation,
        )  # fmt: skip
        readable.unlink()
        # Order: renamed last, so that an interrupted initdb is never taken for a cluster.
        fresh.rename(self._data)

    def _ensure_answering(self) -> None:
        log = self._home / "log"
        give_up = time.monotonic() + 60
        # Running is asked in every round: a server that was just killed counts as such until it is reaped.
        # It is asked first: whoever else may have taken the port must not be waited for.
        while not (is_running := self._is_running()) or not self._is_answering():
            if not is_running:
                self._launch(log)
            elif time.monotonic() > give_up:
                fail(
                    f"PostgreSQL runs but does not answer on port {self._port}; end of {log}:\n{tail(log)}",
                    f"To begin anew, run: scripts/services stop postgres; rm -r {self._home}",
                )
            time.sleep(0.1)

    def _launch(self, log: Path) -> None:
        port = self._port if self._port_file.exists() else ""
        if not (port and is_free(int(port))):
            port = str(pick_free_port())
            self._port_file.write_text(port)
        options = " ".join(f"-c {name}='{value}'" for name, value in {**self.settings, "port": port}.items())
        # More than once: the children of a killed server need a moment to notice and let go of its memory.
        for pause_s in (0, 0.5, 2):
            time.sleep(pause_s)
            if self._ask("pg_ctl", "start", "-D", self._data, "-l", log, "-w", "-t", "60", "-o", options):
                return
        fail(f"PostgreSQL did not start; the end of {log}:\n{tail(log)}")

    def _is_running(self) -> bool:
        return self._ask("pg_ctl", "status", "-D", self._data)

    def _is_answering(self) -> bool:
        return self._port_file.exists() and self._ask(*self._psql("postgres", "select 1"))

    def _ensure_database(self) -> None:
        if not self._ask(*self._psql(self.user, "select 1")):
            self._run(*self._psql("postgres", f"create database {self.user}"))

    def _psql(self, database: str, statement: str) -> list[str]:
        where = ["-h", "127.0.0.1", "-p", self._port, "-U", self.user, "-d", database]
        return ["psql", "--no-psqlrc", "--no-password", "--quiet", *where, "-c", statement]

    def _ask(self, program: str, *arguments: str | Path) -> bool:
        try:
            self._run(program, *arguments, is_quiet=True)
        except subprocess.CalledProcessError:
            return False
        return True

    def _run(self, program: str, *arguments: str | Path, is_quiet: bool = False) -> str:
        directory = self._find_bin()
        assert directory is not None
        command = [str(directory / program), *map(str, arguments)]
        environment = {**os.environ, "LC_ALL": "C"}
        if program == "psql":
            environment["PGPASSWORD"] = self._password
            environment["PGCONNECT_TIMEOUT"] = "10"
        elif IS_ROOT:
            command = ["runuser", "-u", "postgres", "--", *command]
        return run(command, environment, is_quiet=is_quiet)
