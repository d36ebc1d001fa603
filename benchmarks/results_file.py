"""Stored results: what was measured, where, when and of which commit.

A maintainer must not break: result files are read back years later; fields are added, never renamed.
"""

import os
import platform
import re
import statistics
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil
from msgspec import Struct

from benchmarks.measure import Figures

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"

_USER_INFO = re.compile(r"//[^/@\s]*@")
"""Whoever names a peer with its secret does not want it kept."""


class Machine(Struct, frozen=True):
    """Where it ran."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str


class Result(Struct, frozen=True):
    """One run of one suite."""

    suite: str
    date: str
    commit: str
    is_modified: bool
    """The checkout had changes that the commit does not have."""
    machine: Machine
    options: dict[str, str]
    candidates: dict[str, list[Figures]]


def describe_machine() -> Machine:
    """This machine."""
    return Machine(
        cpu=_cpu_name(),
        cores=os.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )


def make_result(suite: str, options: dict[str, str], candidates: dict[str, list[Figures]]) -> Result:
    """Everything known about a run that has just ended."""
    return Result(
        suite=suite,
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=_git("rev-parse", "HEAD") or "unknown",
        is_modified=bool(_git("status", "--porcelain", "--untracked-files=no")),
        machine=describe_machine(),
        options={name: _USER_INFO.sub("//", value) for name, value in options.items()},
        candidates=candidates,
    )


def save(result: Result, directory: Path = RESULTS) -> Path:
    """Write a result beside the earlier ones."""
    directory.mkdir(exist_ok=True)
    stamp = result.date.replace(":", "").replace("-", "")
    path = directory / f"{result.suite}-{stamp}-{result.commit[:10]}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    return path


def load(path: Path) -> Result:
    """Read a stored result."""
    return msgspec.json.decode(path.read_bytes(), type=Result)


def find(commit: str, directory: Path = RESULTS) -> dict[str, Result]:
    """The newest stored result of every suite at a commit, given by its full name or a beginning of it."""
    found: dict[str, Result] = {}
    for path in directory.glob("*.json"):
        result = load(path)
        if result.commit.startswith(commit) and result.date >= getattr(found.get(result.suite), "date", ""):
            found[result.suite] = result
    return found


def summarize(rounds: list[Figures]) -> dict[str, float]:
    """Medians over the rounds, per operation. Columns that are zero in every round are left out."""
    columns: dict[str, list[float]] = {
        "operations/s": [figures.operations / figures.wall_s for figures in rounds],
        "wall µs": [figures.wall_s * 1e6 / figures.operations for figures in rounds],
        "CPU µs": [figures.cpu_s * 1e6 / figures.operations for figures in rounds],
        "watched CPU µs": [figures.watched_cpu_s * 1e6 / figures.operations for figures in rounds],
        "bytes": [figures.bytes / figures.operations for figures in rounds],
        "rows": [figures.rows / figures.operations for figures in rounds],
        "requests": [figures.requests / figures.operations for figures in rounds],
    }
    for name in dict.fromkeys(name for figures in rounds for name in figures.notes):
        columns[name] = [figures.notes[name] for figures in rounds if name in figures.notes]
    return {name: statistics.median(values) for name, values in columns.items() if any(values)}


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
