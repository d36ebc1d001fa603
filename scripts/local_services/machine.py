"""What services need of the machine: programs, ports, private files.

A maintainer must not break: standard library only, since this runs before anything is installed.
"""

import os
import pwd
import random
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

IS_ROOT = os.geteuid() == 0


def fail(message: str, fix: str = "") -> NoReturn:
    sys.exit(f"services: {message}" + (f"\nservices: {fix}" if fix else ""))


def say(text: str) -> None:
    print(f"services: {text}", file=sys.stderr, flush=True)


def find_home() -> Path:
    """Where data and logs live, outside of any checkout and shared by all of one user."""
    if explicit := os.environ.get("CYNOSURE_SERVICES_DIR"):
        return Path(explicit)
    if IS_ROOT:
        # Servers that refuse to run as root cannot reach root's home.
        return Path("/var/lib/cynosure-services")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "cynosure" / "services"


HOME = find_home()


def find_cache(*names: str) -> Path:
    """Where programs are kept that were built or installed: of use to every home."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("CYNOSURE_CACHE_DIR") or Path(cache, "cynosure")).joinpath(*names)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def apt_install(*packages: str) -> None:
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    if not (IS_ROOT and shutil.which("apt-get")):
        fail(f"{' '.join(packages)}: not installed", f"Run: sudo {' '.join(command)}")
    say(f"installing {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        run(["apt-get", "update", "--quiet"], environment)
        run(command, environment)
    except subprocess.CalledProcessError:
        fail(f"{' '.join(packages)}: apt-get failed", f"Run: {' '.join(command)}")


def run(command: Sequence[str], environment: dict[str, str], *, is_quiet: bool = False) -> str:
    """Run to the end and return the output; on failure show it, unless the caller only asks a question."""
    # Output goes to a file, not a pipe: a server started here inherits it, and a pipe would never close.
    with (HOME / f".output-{os.getpid()}").open("w+") as output:
        os.unlink(output.name)
        done = subprocess.run(
            command,
            cwd="/",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
        output.seek(0)
        text = output.read()
    if done.returncode:
        if not is_quiet:
            say(f"{' '.join(command[:6])}: exit {done.returncode}\n{text}")
        raise subprocess.CalledProcessError(done.returncode, command)
    return text


def hand_over(path: Path, owner: str) -> None:
    """Give a file to the account that a server runs as, when that is not this one."""
    if IS_ROOT:
        account = pwd.getpwnam(owner)
        os.chown(path, account.pw_uid, account.pw_gid)


def write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def ask_http(method: str, url: str, body: bytes | None = None) -> int:
    """The status of the answer; 0 when there is none."""
    # Without the proxies of the environment: these are services of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, body, method=method), timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def pick_free_port() -> int:
    return pick_free_ports(1)[0]


def pick_free_ports(count: int) -> list[int]:
    # Below the range from which systems take ports for outgoing connections, so that none of those
    # sits on it when the service is restarted.
    ports: set[int] = set()
    for _ in range(200 * count):
        if len(ports) == count:
            break
        port = random.randrange(20_000, 30_000)
        if is_free(port):
            ports.add(port)
    if len(ports) == count:
        return sorted(ports)
    fail("no free port between 20000 and 30000")


def tail(path: Path, lines: int = 20) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else "(no log)"
