"""Java, Maven and the place where what they fetch and build is kept.

A maintainer must not break: standard library only, since `scripts/peers` use this outside the virtual
environment; nothing here names where packages come from, which is each machine's own configuration.
"""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

INSTALL_JAVA = "apt-get install --no-install-recommends default-jdk-headless maven"
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
"""Options for a Java that runs some seconds, beside other work: the compiler that pays off late, and parallel
collection, cost more than they bring. With that compiler alone Java has room for 48 MB of code, which a
driver fills after some hundred statements, and then fails."""


class ToolFailed(Exception):
    """A tool that is missing or did not do its work. The text says what to do."""


def find_cache(*names: str) -> Path:
    """A folder outside the checkout, shared by all checkouts of one user."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("CYNOSURE_CACHE_DIR") or Path(home, "cynosure")).joinpath(*names)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def lock_cache(folder: Path) -> Iterator[None]:
    """One process at a time fills a folder; whoever waited finds it filled."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find_java(program: str = "java", *, least: int = 17) -> str:
    """A program of the JDK in JAVA_HOME or on the PATH, at least this version."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", program))) if home else shutil.which(program)
    if not found:
        raise ToolFailed(f"No {program} in JAVA_HOME or on the PATH. Install a JDK: {INSTALL_JAVA}")
    version = _read_version(found)
    if version < least:
        raise ToolFailed(f"{found} is Java {version}; {least} or newer is needed. Set JAVA_HOME to one")
    return found


def find_maven() -> str:
    """Maven on the PATH."""
    if found := shutil.which("mvn"):
        return found
    raise ToolFailed(f"No mvn on the PATH. Install Maven: {INSTALL_JAVA}")


def resolve_class_path(pom: Path, out: Path) -> None:
    """Fetch what a pom asks for into Maven's own repository; write the class path to `out`."""
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"
    run_tool([find_maven(), "-B", "-q", "-f", str(pom), goal, f"-Dmdep.outputFile={out}"])


def fetch_artifact(coordinates: str, folder: Path) -> None:
    """Copy one artifact, without what it depends on, into a folder."""
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    run_tool(
        [find_maven(), "-B", "-q", goal, f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"],
        cwd=folder,
    )


def run_tool(command: Sequence[str], *, cwd: Path | None = None) -> str:
    """Run to the end; the output. A failure carries it."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolFailed(f"{' '.join(command[:3])} …: exit {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def _read_version(program: str) -> int:
    text = run_tool([program, "-version"])
    found = re.search(r'(?:version "|javac )(\d+)', text)
    if not found:
        raise ToolFailed(f"{program} -version says nothing that looks like a version: {text[:200]}")
    return int(found[1])
