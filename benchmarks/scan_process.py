"""One governed scan in a process of its own, as a worker's: what it needs and what it holds.

    python -m benchmarks.scan_process TASK WAY        TASK: a file with an encoded scan task

A maintainer must not break: nothing else is imported, read or held in this process.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
from msgspec import Struct

from cynosure.query.scan.port import Unwatched
from cynosure.query.scan_task import decode_task

WAYS: Final = ("fast", "complete")


class Scanned(Struct, frozen=True):
    """What there was to tell."""

    rows: int
    bytes: int
    """Of all batches, in memory."""
    cpu_s: float
    """Without the imports."""
    before_mib: float
    peak_mib: float


def _refuse(*_: object) -> None:
    raise SystemExit("bench: the other way was taken")


def main() -> None:
    """Scan, and tell."""
    task, way = decode_task(Path(sys.argv[1]).read_bytes()), sys.argv[2]
    governed: Any = import_module("cynosure.query.scan.governed")
    if way == "complete":
        governed.read_fast = lambda *_: None
    else:
        governed.read_complete = _refuse
    process = psutil.Process()
    before_mib, begin_s = _peak_mib(), sum(process.cpu_times()[:2])
    rows = size = 0
    for batch in governed.governed_batches(task, Unwatched(task.credentials)):
        rows += batch.num_rows
        size += batch.nbytes
    told = Scanned(rows, size, sum(process.cpu_times()[:2]) - begin_s, before_mib, _peak_mib())
    sys.stdout.write(msgspec.json.encode(told).decode())


def _peak_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise SystemExit("bench: this system does not tell the peak of a process")


if __name__ == "__main__":
    main()
