"""Which partitions of the last stage run when, and that their rows come in order, whatever they weigh."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.query.spark.last_stage import LastStage

MOST_BYTES = 1_000


class TooLarge(Exception):
    """As Spark says it."""


class Broken(Exception):
    """Anything else."""


class Rows:
    def __init__(self, batches: Sequence[bytes], open_rows: set["Rows"]) -> None:
        self._batches = batches
        self._open = open_rows
        open_rows.add(self)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._batches)

    def close(self) -> None:
        self._open.discard(self)


class Cluster:
    """Partitions of so many bytes each, in batches of a single byte value: the partition's number."""

    def __init__(self, weights: Sequence[int], *, slots: int = 8, broken: int | None = None) -> None:
        self.weights = weights
        self.slots = slots
        self.broken = broken
        self.jobs: list[range] = []
        """That ran to their end."""
        self.begun: list[range] = []
        self.held: set[Rows] = set()
        self.most_held = 0
        self.threads: set[int] = set()
        self.is_cancelled = threading.Event()
        self.may_run: Callable[[range], bool] = lambda _: True

    def enter(self) -> None:
        self.threads.add(threading.get_ident())

    def run(self, parts: range) -> Rows:
        self.begun.append(parts)
        while not self.may_run(parts):
            if self.is_cancelled.wait(0.005):
                raise Broken
        if self.broken in parts:
            raise Broken
        if sum(self.weights[each] for each in parts) > MOST_BYTES:
            raise TooLarge
        self.jobs.append(parts)
        rows = Rows([bytes([each % 256]) * self.weights[each] for each in parts], self.held)
        self.most_held = max(self.most_held, len(self.held))
        return rows

    def is_too_large(self, raised: BaseException) -> bool:
        return isinstance(raised, TooLarge)

    def count_slots(self) -> int:
        return self.slots

    def find_most_bytes(self) -> int:
        return MOST_BYTES

    def cancel(self) -> None:
        self.is_cancelled.set()

    def take(self) -> list[bytes]:
        with closing(LastStage(self, len(self.weights)).batches()) as batches:
            return list(batches)

    def expected(self) -> list[bytes]:
        return [bytes([each % 256]) * weight for each, weight in enumerate(self.weights)]

    def assert_nothing_is_left(self) -> None:
        assert not self.held
        assert not self.threads & {each.ident for each in threading.enumerate()}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, MOST_BYTES), max_size=60), st.integers(0, 20))
def test_all_rows_come_once_in_order_and_two_jobs_hold_some(weights: list[int], slots: int):
    cluster = Cluster(weights, slots=slots)

    assert cluster.take() == cluster.expected()

    assert sorted(each for parts in cluster.jobs for each in parts) == list(range(len(weights)))
    assert cluster.most_held <= 2
    assert not cluster.is_cancelled.is_set()
    cluster.assert_nothing_is_left()


def test_small_partitions_soon_take_all_slots():
    cluster = Cluster([1] * 100, slots=32)
    cluster.take()
    assert sorted(map(len, cluster.jobs)) == sorted([1, 1, 4, 16, 32, 32, 14])


def test_slots_that_come_later_are_used():
    cluster = Cluster([1] * 40, slots=0)
    with closing(LastStage(cluster, 40).batches()) as batches:
        for _ in range(20):
            next(batches)
        assert max(map(len, cluster.begun)) == 1
        cluster.slots = 8
        list(batches)
    assert max(map(len, cluster.begun)) == 8


def test_large_partitions_keep_jobs_small():
    cluster = Cluster([MOST_BYTES // 2 + 1] * 20)
    cluster.take()
    assert cluster.begun == cluster.jobs
    assert {len(each) for each in cluster.jobs} == {1}


def test_partitions_that_turn_out_larger_are_run_again_in_parts():
    cluster = Cluster([0] * 30 + [400] * 20)
    assert cluster.take() == cluster.expected()
    assert len(cluster.begun) > len(cluster.jobs)


def test_a_partition_that_is_too_large_alone_is_an_error():
    cluster = Cluster([1, 1, 1, MOST_BYTES + 1, 1, 1])
    with pytest.raises(TooLarge):
        cluster.take()
    cluster.assert_nothing_is_left()


def test_an_error_comes_out_as_it_is_and_ends_the_rest():
    cluster = Cluster([1] * 50, broken=7)
    cluster.may_run = lambda parts: parts.start <= 7
    with pytest.raises(Broken):
        cluster.take()
    assert cluster.is_cancelled.is_set()
    cluster.assert_nothing_is_left()


def test_who_does_not_read_holds_everything_back():
    cluster = Cluster([1] * 50)
    with closing(LastStage(cluster, 50).batches()) as batches:
        for _ in range(3):
            next(batches)
    assert len(cluster.begun) <= 4
    assert sum(map(len, cluster.begun)) <= 1 + 1 + 4 + 8


def test_who_leaves_ends_what_runs():
    cluster = Cluster([1] * 50)
    cluster.may_run = lambda parts: parts.start < 2
    with closing(LastStage(cluster, 50).batches()) as batches:
        next(batches)
        next(batches)
    assert cluster.is_cancelled.is_set()
    cluster.assert_nothing_is_left()


def test_one_partition_takes_no_thread_and_none_no_job():
    one, none = Cluster([5]), Cluster([])
    assert one.take() == one.expected()
    assert none.take() == []
    assert (one.begun, none.begun) == ([range(1)], [])
    assert not one.threads
    one.assert_nothing_is_left()
