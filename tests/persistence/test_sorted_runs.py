import random
from pathlib import Path

import pytest

from cynosure.persistence.sorted_runs import SortedRuns


@pytest.mark.parametrize("run_bytes", [1, 5_000, 1 << 20])
def test_entries_come_out_in_order_however_many_files_they_took(tmp_path: Path, run_bytes: int) -> None:
    chance = random.Random(run_bytes)
    entries = [(chance.randbytes(chance.randint(1, 30)), chance.randbytes(5)) for _ in range(500)]
    runs = SortedRuns(tmp_path, "names", run_bytes=run_bytes)
    for key, value in entries:
        runs.add(key, value)

    assert list(runs.read()) == sorted(entries)
    assert runs.count == 500


def test_equal_keys_are_next_to_each_other_across_files(tmp_path: Path) -> None:
    runs = SortedRuns(tmp_path, "names", run_bytes=1)
    for key in (b"b", b"a", b"b", b"a"):
        runs.add(key)

    assert [key for key, _ in runs.read()] == [b"a", b"a", b"b", b"b"]


def test_no_more_than_one_run_stays_in_memory(tmp_path: Path) -> None:
    runs = SortedRuns(tmp_path, "names", run_bytes=10_000)
    for number in range(1_000):
        runs.add(b"%06d" % number, b"value")

    in_files = sum(len(list(path.read_bytes())) for path in tmp_path.iterdir())
    assert in_files > 950 * (6 + 5)
