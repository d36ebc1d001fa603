import threading

import pytest

from cynosure.common.errors import Unavailable
from cynosure.query.errors import QueryCancelled
from cynosure.query.scan.port import ScanProgress
from cynosure.query.scan_task import Credentials
from cynosure.query.worker.watch import StreamWatch
from cynosure.testing.harness.clock import ManualClock


class Woken:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


class SteppedClock(ManualClock):
    def __init__(self) -> None:
        self.s = 0.0

    def monotonic_s(self) -> float:
        return self.s


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


def test_the_newest_credentials_win_and_stale_ones_are_ignored(clock):
    watch = StreamWatch(Credentials(3), clock, Woken())
    for number, expected in ((2, 3), (3, 3), (5, 5), (4, 5), (6, 6)):
        watch.offer(Credentials(number, {"n": str(number)}))
        assert watch.credentials().number == expected


def test_the_first_reason_to_stop_stays(clock):
    watch = StreamWatch(Credentials(), clock, Woken())
    watch.advance(ScanProgress())
    watch.end(QueryCancelled("Nobody wants this scan any more"))
    watch.end(Unavailable("The gateway's broker is gone"))
    with pytest.raises(QueryCancelled):
        watch.advance(ScanProgress())
    with pytest.raises(QueryCancelled):
        watch.check()


def test_time_without_movement_is_told_unless_spark_has_the_batch(clock):
    watch = StreamWatch(Credentials(), clock, Woken())
    clock.s = 2.0
    assert watch.beat().idle_ms == 2_000
    watch.advance(ScanProgress(1, 2, 3))
    assert (watch.beat().files, watch.beat().rows, watch.beat().bytes, watch.beat().idle_ms) == (1, 2, 3, 0)
    with watch.given():
        clock.s = 100.0
        assert watch.beat().idle_ms == 0
    clock.s = 101.0
    assert watch.beat().idle_ms == 1_000


def test_a_probe_is_answered_by_the_scan_and_at_once(clock):
    woken = Woken()
    watch = StreamWatch(Credentials(), clock, woken)
    watch.ask(7)
    assert watch.beat().probe == 0
    assert woken.count == 0
    watch.advance(ScanProgress())
    assert watch.beat().probe == 7
    assert woken.count == 1
    watch.advance(ScanProgress())
    assert woken.count == 1


def test_a_probe_is_answered_while_spark_has_the_batch(clock):
    watch = StreamWatch(Credentials(), clock, Woken())
    watch.ask(1)
    with watch.given():
        assert watch.beat().probe == 1


def test_two_threads_agree(clock):
    watch = StreamWatch(Credentials(), clock, Woken())

    def offer() -> None:
        for number in range(2_000):
            watch.offer(Credentials(number))

    threads = [threading.Thread(target=offer) for _ in range(3)]
    for thread in threads:
        thread.start()
    seen = [watch.credentials().number for _ in range(2_000)]
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert watch.credentials().number == 1_999
