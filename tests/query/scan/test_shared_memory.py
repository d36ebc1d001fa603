"""What the scans of a process may hold together: who gets memory, who waits, and who is refused."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.errors import OutOfMemory, QueryCancelled
from cynosure.query.scan import governed
from cynosure.query.scan.complete import read_complete
from cynosure.query.scan.governed import governed_batches
from cynosure.query.scan.memory import PROCESS, Budget, SharedMemory
from cynosure.query.scan.port import Unwatched
from cynosure.query.scan_task import ScanTask
from cynosure.testing.scan_kit import read_table, reference, task_from_arrow
from tests.query.scan.written import write_positions, write_vector

LIMIT = 100


class Waiting:
    """Looked at by a scan that waits, and by nobody else."""

    def __init__(self) -> None:
        self.seen = Event()
        self.is_stopped = False

    def __call__(self) -> None:
        self.seen.set()
        if self.is_stopped:
            raise QueryCancelled("Nobody wants it")


def never() -> None:
    raise AssertionError("it waited")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


def begin(
    pool: ThreadPoolExecutor, shared: SharedMemory, size_bytes: int, budget: Budget | None = None
) -> tuple["Future[None]", Waiting]:
    """A scan that takes so much, once it waits."""
    waiting = Waiting()
    scan = budget or Budget(LIMIT, waiting, shared)
    return pool.submit(scan.take, size_bytes), waiting


def test_a_scan_that_is_alone_is_refused_at_once_what_is_beyond_its_limit() -> None:
    shared = SharedMemory()
    budget = Budget(LIMIT, never, shared)
    budget.take(LIMIT)
    with pytest.raises(OutOfMemory, match="more memory than it may have") as failed:
        budget.take(1)
    assert failed.value.details["limit_bytes"] == LIMIT
    budget.close()
    assert shared.held_bytes == 0
    budget.give_back(LIMIT)
    assert shared.held_bytes == 0


def test_scans_of_a_process_share_the_limit_and_wait_for_each_other(pool: ThreadPoolExecutor) -> None:
    shared = SharedMemory()
    first = Budget(LIMIT, never, shared)
    first.take(80)
    done, waiting = begin(pool, shared, 40)
    assert waiting.seen.wait(10)
    assert shared.held_bytes == 80
    first.give_back(20)
    done.result(10)
    assert shared.held_bytes == 100


def test_who_waits_can_be_stopped_and_leaves_its_place(pool: ThreadPoolExecutor) -> None:
    shared = SharedMemory()
    first = Budget(LIMIT, never, shared)
    first.take(100)
    stopped, waiting = begin(pool, shared, 50)
    assert waiting.seen.wait(10)
    waiting.is_stopped = True
    with pytest.raises(QueryCancelled):
        stopped.result(10)
    assert shared.held_bytes == 100
    first.close()
    Budget(LIMIT, never, shared).take(100)


def test_who_waits_in_vain_is_told_so(pool: ThreadPoolExecutor) -> None:
    shared = SharedMemory(patience_s=0.2)
    Budget(LIMIT, never, shared).take(80)
    done, _ = begin(pool, shared, 40)
    with pytest.raises(OutOfMemory, match="waited in vain") as failed:
        done.result(10)
    assert "query.memory_limit" in failed.value.fix
    assert shared.held_bytes == 80


def test_of_two_that_wait_for_each_other_one_ends_and_the_other_goes_on(pool: ThreadPoolExecutor) -> None:
    shared = SharedMemory(patience_s=0.3)

    def scan() -> str:
        budget = Budget(LIMIT, shared=shared)
        try:
            budget.take(50)
            both.result(10)
            budget.take(30)
        except OutOfMemory:
            return "refused"
        finally:
            budget.close()
        return "done"

    both: Future[None] = Future()
    scans = [pool.submit(scan), pool.submit(scan)]
    while shared.held_bytes < 100:
        pass
    both.set_result(None)
    assert sorted(each.result(20) for each in scans) == ["done", "refused"]
    assert shared.held_bytes == 0


def test_who_holds_something_comes_before_who_comes_new(pool: ThreadPoolExecutor) -> None:
    shared = SharedMemory()
    old, other = Budget(LIMIT, shared=shared), Budget(LIMIT, never, shared)
    old.take(40)
    other.take(40)
    done, waiting = begin(pool, shared, 90)
    assert waiting.seen.wait(10)
    # Twenty are free, which is not enough for the new one: it does not keep those from the old ones.
    other.take(20)
    other.close()
    old.take(60)
    assert not done.done()
    old.close()
    done.result(10)


def test_who_comes_new_waits_behind_those_that_wait(pool: ThreadPoolExecutor) -> None:
    shared = SharedMemory()
    first = Budget(LIMIT, never, shared)
    first.take(80)
    large, large_waits = begin(pool, shared, 90)
    assert large_waits.seen.wait(10)
    small, small_waits = begin(pool, shared, 10)
    assert small_waits.seen.wait(10)
    assert not Budget(LIMIT, never, shared).try_take(1)
    first.close()
    large.result(10)
    small.result(10)
    assert shared.held_bytes == 100


def test_what_can_be_done_with_less_leaves_a_part_for_others() -> None:
    shared = SharedMemory()
    budget = Budget(LIMIT, never, shared)
    assert not budget.try_take(76)
    assert budget.try_take(75)
    assert not Budget(LIMIT, never, shared).try_take(1)
    budget.take(25)


# Scans.


def with_deletes(directory: Path) -> ScanTask:
    table = pa.table({"id": range(20_000), "text": [f"text {each}" for each in range(20_000)]})
    task = task_from_arrow(directory, table, files=2, row_group_rows=1_000)
    positions = write_positions(directory / "positions", [(task.files[0].path, each) for each in range(500)])
    vector = write_vector(directory / "vector", range(300))
    # The vector is of either file: of the first it names rows that are gone already.
    files = tuple(replace(each, deletes=(0, 1)) for each in task.files)
    return replace(task, files=files, deletes=(positions, vector))


@pytest.mark.parametrize("way", ["fast", "complete"])
@pytest.mark.parametrize("end", ["finished", "left", "stopped"])
def test_a_scan_gives_everything_back(
    tmp_path: Path, way: str, end: str, without_fast: Callable[[], object]
) -> None:
    task = with_deletes(tmp_path)
    before = PROCESS.held_bytes

    class Stopping(Unwatched):
        def advance(self, progress: object) -> None:
            assert PROCESS.held_bytes >= before
            if end == "stopped" and PROCESS.held_bytes > before:
                raise QueryCancelled("Nobody wants it")

    def scan() -> None:
        batches = governed_batches(task, Stopping(task.credentials))
        if end == "finished":
            assert sum(each.num_rows for each in batches) == 20_000 - 500 - 300
        elif end == "left":
            next(batches)
            assert PROCESS.held_bytes > before
            batches.close()
        else:
            with pytest.raises(QueryCancelled):
                list(batches)

    if way == "fast":
        scan()
    else:
        with without_fast():  # type: ignore[attr-defined]
            scan()
    assert PROCESS.held_bytes == before


def test_a_scan_for_which_there_is_little_memory_reads_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside one that holds most of it, and gives nothing back."""
    ways = []

    def read(*given: Any) -> Any:
        ways.append("complete")
        return read_complete(*given)

    monkeypatch.setattr(governed, "read_complete", read)
    table = pa.table({"id": range(200_000), "text": [f"text {each}" for each in range(200_000)]})
    task = task_from_arrow(tmp_path, table, memory_limit_bytes=64 * 2**20, row_filter=reference("gt", 1, 5))
    with Budget(64 * 2**20).holding(40 * 2**20):
        found = read_table(task)
    assert ways == ["complete"]
    assert found.num_rows == 200_000 - 6
    assert read_table(task) == found
    assert ways == ["complete"]
