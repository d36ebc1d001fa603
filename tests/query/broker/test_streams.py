"""Streams of fragments: one live one, of the newest attempt; failures, and the end (I106)."""

import asyncio
import threading
from datetime import timedelta

import pyarrow as pa
import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import BadInput, CynosureError, Misconfigured
from cynosure.query.broker.broker import Broker
from cynosure.query.broker.brokered import LEAST_PLACES, BrokeredQuery, Refusal
from cynosure.query.broker.live_stream import LiveStream
from cynosure.query.broker.runtime import Outcome
from cynosure.query.engine import Relation
from cynosure.query.errors import EngineUnavailable, NotReadable, QueryCancelled
from cynosure.query.scan.port import ScanProgress
from cynosure.query.scan_task import InlineTask
from cynosure.query.settings import BrokerSettings, QuerySettings, QuerySparkSettings
from cynosure.query.spark.engine import SparkEngine
from cynosure.query.stream.frames import Hello
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import read_fragments
from cynosure.storage.errors import StorageUnavailable
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_broker import (
    HeldScan,
    SmallBroker,
    make_order,
    make_relation,
    make_task,
    number_batches,
    scan_files,
)

pytestmark = pytest.mark.anyio


async def test_a_fragment_is_read_and_reported_once():
    async with SmallBroker() as small:
        query = small.open("q", ["f0", "f1"])

        assert await small.read(query, "f0") == [0, 0, 0]

        await small.wait_for(lambda: small.reports)
        [report] = small.reports
        assert (report.fragment_id, report.is_success, report.rows, report.bytes) == ("f0", True, 3, 30)
        assert report.worker == "host/1"
        [worker] = small.broker.workers()
        assert (worker.name, worker.is_healthy, worker.active_fragments) == ("host/1", True, 0)
        [row] = small.broker.runtime.tasks()
        assert (row.outcome, row.relation, row.files) == (Outcome.DONE, "c.n.t", 3)


async def test_rows_of_the_coordinator_are_given_as_they_are():
    batch = pa.RecordBatch.from_pydict({"n": [7, 8]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    task = InlineTask("q", "f0", sink.getvalue().to_pybytes())
    async with SmallBroker() as small:
        relation = Relation(view="cyn_0", shown="system.runtime.tasks", columns=(), fragments=(task,))
        query = small.broker.open_query("q", [relation], small.reports.append, small.killed.append, 0)

        assert await small.read(query, "f0") == [7, 8]


async def test_a_newer_attempt_fences_a_live_older_one():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        old, new = HeldScan(), HeldScan()
        first = asyncio.create_task(small.read(query, "f0", attempt_id=1, scan=old))
        await old.wait_reached()
        second = asyncio.create_task(small.read(query, "f0", attempt_id=2, scan=new))
        await new.wait_reached()
        await small.wait_for(old.is_unwanted)

        old.let_go(3)
        new.let_go(3)

        with pytest.raises(QueryCancelled):
            await first
        assert await second == [0, 0, 0]
        await small.wait_for(lambda: len(small.broker.runtime.tasks()) == 2)
        assert {row.outcome for row in small.broker.runtime.tasks()} == {Outcome.FENCED, Outcome.DONE}
        # A fenced attempt is no failure: only the one that counted is reported.
        assert [report.attempt for report in small.reports] == [2]
        assert not query.failed.done()


async def test_what_runs_is_told_with_its_worker_and_attempt():
    async with SmallBroker() as small:
        query = small.open("q", ["f0", "f1"])
        held = HeldScan()
        reading = asyncio.create_task(small.read(query, "f0", attempt_id=1, scan=held))
        await held.wait_reached()
        engines = [
            SparkEngine(QuerySettings(spark=QuerySparkSettings(scan=scan)), small.broker, SystemClock())
            for scan in ("isolated", "native")
        ]
        for engine in engines:
            told = engine.list_running("q")
            assert told is not None
            [one] = told
            assert (one.fragment_id, one.worker, one.attempt) == ("f0", "host/1", 1)
            assert one.elapsed_ms >= 0
        held.let_go(3)
        await reading
        await small.wait_for(lambda: small.reports)
        # Of a native scan nothing is known, which is not that nothing runs.
        assert [each.list_running("q") for each in engines] == [[], None]


async def test_an_attempt_older_than_the_live_one_is_refused():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        held = HeldScan()
        newer = asyncio.create_task(small.read(query, "f0", attempt_id=5, scan=held))
        await held.wait_reached()

        with pytest.raises(QueryCancelled):
            await small.read(query, "f0", attempt_id=4)

        held.let_go(3)
        assert await newer == [0, 0, 0]


async def test_of_racing_attempts_the_newest_wins():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        scans = [HeldScan() for _ in range(6)]
        for scan in scans:
            scan.let_go(3)
        attempts = [
            asyncio.create_task(small.read(query, "f0", attempt_id=number, scan=scan))
            for number, scan in enumerate(scans)
        ]

        results = await asyncio.gather(*attempts, return_exceptions=True)

        assert results[-1] == [0, 0, 0]
        assert all(each == [0, 0, 0] or isinstance(each, QueryCancelled) for each in results)


async def test_two_places_of_a_plan_read_one_fragment_at_once():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        one, two = HeldScan(), HeldScan()
        first = asyncio.create_task(small.read(query, "f0", attempt_id=1, place="0/0", scan=one))
        second = asyncio.create_task(small.read(query, "f0", attempt_id=2, place="3/0", scan=two))
        await one.wait_reached()
        await two.wait_reached()
        one.let_go(3)
        two.let_go(3)

        assert await first == await second == [0, 0, 0]


class Silent:
    """The end of a line that nobody listens at."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        pass


def in_place(place: str) -> Hello:
    return Hello(
        query_id="q",
        fragment_id="f0",
        token="",
        attempt_id=1,
        attempt=0,
        worker="w",
        process="p",
        place=place,
    )


async def test_as_many_places_as_there_are_cores_read_one_fragment_at_once_and_no_more():
    slots = 3 * LEAST_PLACES
    async with SmallBroker() as small:
        relation = make_relation([make_task("f0", query_id="q")])
        query = small.broker.open_query("q", [relation], print, print, 0, lambda: slots)
        for number in range(2 * slots):
            hello = in_place(f"{number}/0")
            assert query.admit(hello) is None
            query.begin(LiveStream(hello, Silent(), "c.n.t", 0.0, 0))
        assert query.admit(in_place("7/0")) is None
        assert not query.failed.done()

        assert query.admit(in_place("x/0")) is Refusal.PLACES

        assert "more places" in query.failed.result().message
        assert query.failed.result().fix


async def test_a_fragment_that_is_done_may_be_read_again_until_the_statement_ends():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        tokens = dict(query.tokens)
        await small.read(query, "f0", attempt_id=1)

        assert await small.read(query, "f0", attempt_id=9) == [0, 0, 0]

        query.close()
        query.tokens.update(tokens)
        with pytest.raises(EngineUnavailable) as raised:
            await small.read(query, "f0", attempt_id=10)
        assert raised.value.details["kind"] == "Forbidden"


async def test_closing_a_statement_stops_its_scans_and_forgets_it():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        held = HeldScan()
        running = asyncio.create_task(small.read(query, "f0", scan=held))
        await held.wait_reached()

        query.close()
        query.close()
        await small.wait_for(held.is_unwanted)
        held.let_go(3)

        with pytest.raises(QueryCancelled):
            await running
        assert query.tokens == {}
        assert query.failed.cancelled()
        await small.wait_for(lambda: not small.broker._connections)
        assert small.reports == []
        [row] = small.broker.runtime.tasks()
        assert row.outcome is Outcome.STOPPED
        # The same id may come again: a statement that is run once more.
        small.open("q", ["f0"])


async def test_a_failure_is_tried_again_until_the_retries_are_used_up():
    def fail(task, watch):
        raise StorageUnavailable("The storage does not answer", fix="Try again.", path="s3://hidden-bucket/0")
        yield

    async with SmallBroker() as small:
        query = small.open("q", ["f0"], retries=2)
        for attempt_id in range(3):
            assert not query.failed.done()
            with pytest.raises(EngineUnavailable):
                await small.read(query, "f0", attempt_id=attempt_id, scan=fail)
            await small.wait_for(lambda count=attempt_id: len(small.reports) == count + 1)

        error = await query.failed
        assert type(error) is StorageUnavailable
        assert error.details == {"fragment": "f0", "attempts": 3}
        assert "hidden-bucket" not in str(error)
        assert [report.is_success for report in small.reports] == [False] * 3


async def test_a_failure_marks_its_worker_until_it_beats_again():
    def fail(task, watch):
        raise StorageUnavailable("The storage does not answer")
        yield

    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        with pytest.raises(EngineUnavailable):
            await small.read(query, "f0", scan=fail)
        await small.wait_for(lambda: small.reports)
        assert [worker.is_healthy for worker in small.broker.workers()] == [False]

        await small.read(query, "f0", attempt_id=1)

        assert [worker.is_healthy for worker in small.broker.workers()] == [True]


async def test_what_fails_everywhere_is_not_tried_again():
    def fail(task, watch):
        raise NotReadable("A file is of a format that is not read", path="s3://hidden-bucket/0")
        yield

    async with SmallBroker() as small:
        query = small.open("q", ["f0"], retries=2)
        with pytest.raises(EngineUnavailable) as raised:
            await small.read(query, "f0", scan=fail)

        error = await asyncio.wait_for(query.failed, 30)
        assert type(error) is NotReadable
        assert error.message == "A file is of a format that is not read"
        # Spark is told a kind and a fragment; the file is told to nobody.
        assert raised.value.details == {"kind": "NotReadable", "fragment": "f0"}
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None
        assert "hidden-bucket" not in str(error)
        assert [worker.is_healthy for worker in small.broker.workers()] == [True]


async def test_an_unexpected_error_tells_its_type_only():
    def fail(task, watch):
        raise ValueError("the value of a hidden row")
        yield

    async with SmallBroker() as small:
        query = small.open("q", ["f0"], retries=0)
        with pytest.raises(EngineUnavailable) as raised:
            await small.read(query, "f0", scan=fail)

        error = await asyncio.wait_for(query.failed, 30)
        assert "ValueError" in str(error)
        assert "hidden row" not in str(error) + str(raised.value)


STUCK = {
    "heartbeat": timedelta(milliseconds=50),
    "missed_heartbeats": 10_000,
    "stuck_after": timedelta(seconds=3),
}
"""Executors beat in real time; how late it is for the broker is in the test's hands."""


async def pass_a_second(small: SmallBroker, clock: ManualClock, query: BrokeredQuery) -> None:
    """A second of the broker's time, in which every scan that is left has beaten."""
    await clock.advance(1)
    await small.wait_for(lambda: all(each.beat_s >= clock.monotonic_s() for each in query.live()))


async def test_a_scan_that_beats_without_moving_is_stuck(manual_clock):
    held = HeldScan()
    async with SmallBroker(manual_clock, **STUCK) as small:
        query = small.open("q", ["f0"], retries=0)
        running = asyncio.create_task(small.read(query, "f0", attempt_id=77, scan=held))
        await held.wait_reached()

        for _ in range(8):
            await pass_a_second(small, manual_clock, query)

        error = await asyncio.wait_for(query.failed, 30)
        assert type(error) is EngineUnavailable
        assert small.killed == [77]
        assert [worker.is_healthy for worker in small.broker.workers()] == [False]
        assert [row.outcome for row in small.broker.runtime.tasks()] == [Outcome.STUCK]
        await small.wait_for(held.is_unwanted)
        held.let_go(3)
        with pytest.raises(QueryCancelled):
            await running


async def test_a_scan_whose_rows_nobody_takes_is_not_stuck(manual_clock):
    async with SmallBroker(manual_clock, **STUCK) as small:
        query = small.open("q", ["f0"])
        order = make_order(query, ["f0"])
        batches = read_fragments(order, number_batches(1), attempt=Attempt(), scan=scan_files)
        first = await asyncio.to_thread(next, batches)

        # Spark is busy sorting: longer than a scan may stand still.
        for _ in range(8):
            await pass_a_second(small, manual_clock, query)

        rest = await asyncio.to_thread(list, batches)
        assert [first.num_rows, *(each.num_rows for each in rest)] == [1, 1, 1]
        assert small.killed == []


async def test_a_slow_scan_that_moves_is_not_stuck(manual_clock):
    steps, reached = threading.Semaphore(0), threading.Semaphore(0)

    def slow(task, watch):
        for number in range(8):
            # Through a large file nothing is finished, but something is read.
            watch.advance(ScanProgress(bytes=number))
            reached.release()
            steps.acquire(timeout=30)
        yield from scan_files(task, watch)

    async with SmallBroker(manual_clock, **STUCK) as small:
        query = small.open("q", ["f0"])
        running = asyncio.create_task(small.read(query, "f0", scan=slow))
        for _ in range(8):
            assert await asyncio.to_thread(reached.acquire, timeout=30)
            await pass_a_second(small, manual_clock, query)
            steps.release()

        assert len(await running) == 3
        assert small.killed == []


class LeapingClock(SystemClock):
    """As when the process was stopped, or the machine asleep."""

    leapt_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.leapt_s


async def test_a_broker_that_stood_still_itself_blames_no_scan():
    clock = LeapingClock()
    held = HeldScan()
    async with SmallBroker(clock, heartbeat=timedelta(milliseconds=500), missed_heartbeats=60) as small:
        query = small.open("q", ["f0"])
        running = asyncio.create_task(small.read(query, "f0", scan=held))
        await held.wait_reached()
        [stream] = query.live()

        clock.leapt_s = 600.0
        seen_s = stream.beat_s
        # Forgiven, then heard again.
        await small.wait_for(lambda: stream.beat_s > seen_s + 599)
        await small.wait_for(lambda: stream.beat_s > seen_s + 600 or not stream.is_running)

        assert small.killed == []
        held.let_go(3)
        assert await running == [0, 0, 0]


async def test_a_limit_leaves_quietly():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"], retries=0)
        batches = read_fragments(
            make_order(query, ["f0"]), number_batches(1), attempt=Attempt(), scan=scan_files
        )
        await asyncio.to_thread(next, batches)

        await asyncio.to_thread(batches.close)

        await small.wait_for(lambda: small.reports)
        [report] = small.reports
        assert (report.is_success, report.rows) == (True, 1)
        assert [row.outcome for row in small.broker.runtime.tasks()] == [Outcome.LEFT]
        assert not query.failed.done()


async def test_columns_that_spark_does_not_expect_are_an_error():
    def other(task, watch):
        yield pa.RecordBatch.from_pydict({"n": ["text"]})

    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        with pytest.raises(EngineUnavailable):
            await small.read(query, "f0", scan=other)

        error = await asyncio.wait_for(query.failed, 30)
        assert type(error) is NotReadable


async def test_two_fragments_with_one_id_are_refused():
    async with SmallBroker() as small:
        with pytest.raises(BadInput) as raised:
            small.open("q", ["f0", "f0"])
        assert raised.value.field == "fragment_id"


async def test_an_address_that_stands_for_all_needs_a_name():
    broker = Broker(BrokerSettings(host="0.0.0.0"), SystemClock())
    with pytest.raises(Misconfigured) as raised:
        await broker.start()
    assert "advertised_host" in raised.value.fix
    broker = Broker(BrokerSettings(host="0.0.0.0", advertised_host="localhost"), SystemClock())
    await broker.start()
    try:
        query = broker.open_query("q", [], print, print, 0)
        assert query.address.startswith("localhost:")
    finally:
        await broker.close()


async def test_a_port_that_is_taken_is_named():
    async with SmallBroker() as small:
        port = int(small.open("q", []).address.rpartition(":")[2])
        with pytest.raises(Misconfigured) as raised:
            await Broker(BrokerSettings(port=port), SystemClock()).start()
        assert "query.broker.port" in raised.value.fix


async def test_a_broker_that_is_gone_ends_scans_cleanly():
    small = SmallBroker()
    held = HeldScan()
    async with small:
        query = small.open("q", ["f0"])
        running = asyncio.create_task(small.read(query, "f0", scan=held))
        await held.wait_reached()
        await small.wait_for(small.broker.runtime.tasks)
        # As when the process is killed: connections end without a word.
        for stream in query.live():
            stream.abort()
        await small.wait_for(lambda: small.reports)
        await small.wait_for(held.is_unwanted)
        held.let_go(3)

        with pytest.raises(CynosureError) as raised:
            await running
    assert raised.value.details == {"kind": "Unavailable", "fragment": "f0"}
