"""A scan in a process of its own, as an executor has it: arguments ORDER ATTEMPT-ID FILES-PER-SECOND.

Prints `file N` before each file, `done ROWS` or `error KIND` at the end.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa

from cynosure.common.errors import CynosureError
from cynosure.query.scan.port import ScanWatch
from cynosure.query.scan_task import ScanTask
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import FragmentOrder, read_fragments
from cynosure.testing.small_broker import number_batches, scan_files


def slow_scan(task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(scan_files(task, watch)):
        print(f"file {number}", flush=True)
        time.sleep(1 / float(sys.argv[3]))
        yield batch


def main() -> None:
    order = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=FragmentOrder)
    attempt = Attempt(int(sys.argv[2]), 0, "0/0", f"host/{sys.argv[2]}", "host:1")
    try:
        batches = read_fragments(order, number_batches(1), attempt=attempt, scan=slow_scan)
        rows = sum(batch.num_rows for batch in batches)
    except CynosureError as error:
        print(f"error {error.details.get('kind') or type(error).__name__}", flush=True)
    else:
        print(f"done {rows}", flush=True)


if __name__ == "__main__":
    main()
