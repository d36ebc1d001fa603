"""The life of a statement: ends once, whenever it is ended, and is recorded once (I108)."""

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from cynosure.common.clock import SystemClock
from cynosure.common.errors import Conflict, Expired, NotAuthenticated, NotFound, Unavailable
from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.query.catalog_access.port import QueryEvent
from cynosure.query.coordinator.auditing import Auditor
from cynosure.query.coordinator.statement import State
from cynosure.query.engine import EngineQuery, WorkerInfo
from cynosure.query.errors import (
    DeadlinePassed,
    EngineUnavailable,
    NotReadable,
    OutOfMemory,
    QueryCancelled,
    QueryFailed,
    QueueFull,
    ScanBroken,
    SqlError,
)
from cynosure.query.settings import QuerySettings
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.testing.small_engine import SmallEngine
from tests.query.coordinator.asking import ask, finish, open_service, request

pytestmark = pytest.mark.anyio


class SmallSession:
    """A catalog without tables, which remembers what is recorded."""

    def __init__(self, user: str = "ann") -> None:
        self.user = user
        self.owner = f"default/{user}"
        self.events: list[QueryEvent] = []
        self.failures: list[Exception] = []
        self.opening = asyncio.Event()
        self.is_held = False

    async def record(self, event: QueryEvent) -> None:
        if self.failures:
            raise self.failures.pop()
        self.events.append(event)

    async def open_name(self, name: Any, travel: Any) -> Any:
        self.opening.set()
        await asyncio.Event().wait()

    async def until_recorded(self) -> QueryEvent:
        await until(lambda: self.events)
        [event] = self.events
        return event


def some(rows: int) -> Any:
    def answer(query: EngineQuery) -> pa.Table:
        return pa.table({"x": pa.array(range(rows), pa.int64())})

    return answer


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - others move it
            await asyncio.sleep(0.01)


async def until_running(engine: SmallEngine) -> None:
    await until(lambda: engine.running)


SQL = "SELECT 1 AS x"


async def test_pages_rows_and_audit():
    session, engine = SmallSession(), SmallEngine(some(25), batch_rows=7)
    async with open_service(engine, settings=QuerySettings(page_rows=10)) as service:
        info, rows = await ask(service, session, "SELECT 'secret' AS x")
        assert [each["x"] for each in rows] == list(range(25))
        assert (info.state, info.rows, info.engine, info.reason) == (
            State.FINISHED,
            25,
            "local",
            "no cluster",
        )
        assert info.schema is not None
        assert info.schema.names == ["x"]
        event = await session.until_recorded()
        assert engine.running == 0
    assert (event.outcome, event.rows, event.engine, event.error) == ("FINISHED", 25, "local", "")
    assert "secret" not in event.sql
    assert "?" in event.sql


async def test_an_event_that_cannot_be_recorded_is_logged_whole(caplog: pytest.LogCaptureFixture):
    session, auditor = SmallSession(), Auditor(SystemClock(), random.Random(1))
    session.failures = [Unavailable("The server cannot be reached")] * 100
    event = QueryEvent("id", "FAILED", "SELECT ?", ("a.b.c",), (), 0, 0, 1, "local", error="QueryFailed")
    auditor.record(session, event)  # type: ignore[arg-type]
    await auditor.flush(0.05)
    [line] = [each for each in caplog.records if each.getMessage() == "query.audit.lost"]
    fields = vars(line)["cynosure_fields"]
    assert (fields["statement-id"], fields["sql"], fields["kind"]) == ("id", "SELECT ?", "QueryFailed")
    assert isinstance(fields["error"], asyncio.CancelledError)


async def test_a_failure_is_an_event_too_and_the_error_of_every_fetch():
    session = SmallSession()
    engine = SmallEngine(lambda _: QueryFailed("Division by zero", condition="DIVIDE_BY_ZERO"))
    async with open_service(engine) as service:
        info = await service.submit(session, request(SQL))
        info = await finish(service, session, info)
        assert info.state is State.FAILED
        for _ in range(2):
            with pytest.raises(QueryFailed, match="Division"):
                await service.fetch(session, info.id, 1)
        event = await session.until_recorded()
    assert (event.outcome, event.error) == ("FAILED", "QueryFailed")


async def test_an_error_that_is_none_of_ours_is_told_without_its_words(caplog: pytest.LogCaptureFixture):
    session = SmallSession()
    engine = SmallEngine(lambda _: RuntimeError("row 17 holds hunter2 at s3://bucket/file"))
    async with open_service(engine) as service:
        info = await service.submit(session, request(SQL))
        info = await finish(service, session, info)
    assert "hunter2" not in str(info.error)
    assert "s3:" not in str(info.error)
    assert any("query.statement.broken" in each.getMessage() for each in caplog.records)
    assert "hunter2" not in "".join(str(vars(each)) for each in caplog.records)


async def test_batches_of_other_columns_than_the_engine_said_are_an_error():
    session, engine = SmallSession(), SmallEngine(some(3))
    engine.said = pa.schema({"x": pa.string()})
    async with open_service(engine) as service:
        with pytest.raises(QueryFailed, match="other columns"):
            await ask(service, session, SQL)
    assert engine.running == 0


@pytest.mark.parametrize("stage", ["queued", "planning", "running", "fetching", "at once"])
async def test_a_statement_is_cancelled_in_every_state(stage: str):
    session, engine = SmallSession(), SmallEngine(some(50), batch_rows=1)
    settings = QuerySettings(concurrent=1, page_rows=1)
    async with open_service(engine, settings=settings) as service:
        if stage == "queued":
            engine.held = asyncio.Event()
            await service.submit(session, request(SQL))
            await until_running(engine)
        if stage == "running":
            engine.held = asyncio.Event()
        sql = "SELECT * FROM lake.shop.t" if stage == "planning" else SQL
        info = await service.submit(session, request(sql))
        if stage == "planning":
            await asyncio.wait_for(session.opening.wait(), 60)
        if stage == "running":
            await until_running(engine)
        if stage == "fetching":
            assert await service.fetch(session, info.id, 1, wait_s=60)
        wanted = {"queued": "QUEUED", "planning": "PLANNING", "running": "RUNNING", "fetching": "RUNNING"}
        if stage in wanted:
            assert (await service.get(session, info.id)).state == wanted[stage]
        done = await service.cancel(session, info.id)
        assert done.state is State.CANCELED
        assert isinstance(done.error, QueryCancelled)
        assert engine.running == (1 if stage == "queued" else 0)
        with pytest.raises(QueryCancelled):
            await service.fetch(session, info.id, 2)
        again = await service.cancel(session, info.id)
        assert again.state is State.CANCELED
        assert (await session.until_recorded()).outcome == "CANCELED"


async def test_whoever_cancels_it_again_waits_for_the_end_and_does_not_break_it_off():
    session, engine = SmallSession(), SmallEngine(some(5))
    engine.held, engine.ending = asyncio.Event(), asyncio.Event()
    async with open_service(engine, settings=QuerySettings(concurrent=1)) as service:
        info = await service.submit(session, request(SQL))
        await until_running(engine)
        cancelling = []
        for _ in range(3):
            cancelling.append(asyncio.create_task(service.cancel(session, info.id)))
            await asyncio.sleep(0.01)
        assert not any(each.done() for each in cancelling)
        assert service._admission._running == 1
        engine.ending.set()
        assert {each.state for each in await asyncio.gather(*cancelling)} == {State.CANCELED}
        assert engine.running == 0
        assert (await session.until_recorded()).outcome == "CANCELED"


async def test_a_deadline_ends_it_wherever_it_is():
    session, engine = SmallSession(), SmallEngine(some(5))
    engine.held = asyncio.Event()
    async with open_service(engine) as service:
        for sql in (SQL, "SELECT * FROM lake.shop.t"):
            info = await service.submit(session, request(sql, timeout_s=0.1))
            info = await finish(service, session, info)
            assert info.state is State.FAILED
            with pytest.raises(DeadlinePassed):
                await service.fetch(session, info.id, 1)
        assert engine.running == 0


async def test_results_that_nobody_fetches_are_given_up():
    session = SmallSession()
    engine = SmallEngine(lambda query: some(50 if query.columns == ("large",) else 1)(query), batch_rows=1)
    settings = QuerySettings(page_rows=1, idle_timeout=timedelta(seconds=2))
    async with open_service(engine, settings=settings) as service:
        small = await service.submit(session, request(SQL))
        # Asked often, so that it is not given up before it has ended.
        small = await finish(service, session, small, wait_s=0.1)
        assert small.state is State.FINISHED
        large = await service.submit(session, request("SELECT 1 AS large"))

        def own() -> dict[str, State]:
            return {each.id: each.state for each in service.list_own(session)}

        await until(lambda: own()[large.id] is State.CANCELED)
        assert own() == {large.id: State.CANCELED, small.id: State.FINISHED}
        assert engine.running == 0
        await until(lambda: not service._find(session, small.id).held_bytes)
        with pytest.raises(Expired):
            await service.fetch(session, small.id, 1)


async def test_the_same_id_is_the_same_statement():
    session, engine = SmallSession(), SmallEngine(some(5))
    one = request(SQL, statement_id="0191d3a0-0000-7000-8000-000000000001")
    async with open_service(engine) as service:
        first = await service.submit(session, one)
        second = await service.submit(session, one)
        assert first.id == second.id
        await finish(service, session, first)
        assert (await service.submit(session, one)).state is State.FINISHED
        assert len(engine.queries) == 1
        other = request("SELECT 2 AS x", statement_id=one.statement_id)
        with pytest.raises(Conflict):
            await service.submit(session, other)


async def test_statements_of_others_do_not_exist():
    ann, bob, engine = SmallSession(), SmallSession("bob"), SmallEngine(some(5))
    async with open_service(engine) as service:
        info = await service.submit(ann, request(SQL))
        for call in (service.get, service.cancel):
            with pytest.raises(NotFound):
                await call(bob, info.id)
        with pytest.raises(NotFound):
            await service.fetch(bob, info.id, 1)
        assert service.list_own(bob) == []
        assert [each.id for each in service.list_own(ann)] == [info.id]


async def test_engines_tell_statements_apart_whose_users_chose_the_same_id():
    ann, bob, engine = SmallSession(), SmallSession("bob"), SmallEngine(some(5))
    engine.held = asyncio.Event()
    one = request(SQL, statement_id="0191d3a0-0000-7000-8000-000000000001")
    async with open_service(engine) as service:
        infos = [await service.submit(each, one) for each in (ann, bob)]
        assert {each.id for each in infos} == {one.statement_id}
        await until(lambda: engine.running == 2)
        first, second = engine.queries
        assert first.id != second.id
        engine.held.set()
        for session, info in zip((ann, bob), infos, strict=True):
            assert (await finish(service, session, info)).state is State.FINISHED


async def test_an_id_that_was_used_before_makes_no_event_the_same_as_another():
    """The catalog keeps an event once: whoever chose an id again would leave none."""
    ann, bob = SmallSession(), SmallSession("bob")
    one = {"statement_id": "0191d3a0-0000-7000-8000-000000000001"}
    for session in (ann, bob, ann):
        # Each time another gateway, or one that has forgotten the statement before.
        async with open_service(SmallEngine(some(5))) as service:
            await ask(service, session, SQL, **one)

    told = [each.statement_id for each in (*ann.events, *bob.events)]
    assert len(set(told)) == 3
    assert {each.rpartition("-")[0] for each in told} == {*one.values()}


async def test_large_numbers_are_told_apart_as_parameters():
    session, engine = SmallSession(), SmallEngine(some(5))
    one = request(
        "SELECT ? AS x",
        statement_id="0191d3a0-0000-7000-8000-000000000001",
        parameters=[{"type": "DECIMAL", "value": 10**37}],
    )
    other = structs.replace(one, parameters=[{"type": "DECIMAL", "value": 10**37 + 1}])
    async with open_service(engine) as service:
        info = await service.submit(session, one)
        assert (await finish(service, session, info)).state is State.FINISHED
        assert (await service.submit(session, one)).id == info.id
        with pytest.raises(Conflict):
            await service.submit(session, other)


async def test_too_many_are_refused():
    session, engine = SmallSession(), SmallEngine(some(5))
    engine.held = asyncio.Event()
    async with open_service(engine, settings=QuerySettings(concurrent=1, queued=1)) as service:
        await service.submit(session, request(SQL))
        await until_running(engine)
        await service.submit(session, request(SQL))
        await until(lambda: service._admission._waiting)
        with pytest.raises(QueueFull):
            await service.submit(session, request(SQL))
        assert service.count_unfinished() == 2
        engine.held.set()


async def test_too_many_that_come_at_once_are_refused_too():
    session, engine = SmallSession(), SmallEngine(some(5))
    engine.held = asyncio.Event()
    async with open_service(engine, settings=QuerySettings(concurrent=1, queued=2)) as service:
        sent = [service.submit(session, request(SQL)) for _ in range(20)]
        found = await asyncio.gather(*sent, return_exceptions=True)
        assert sum(isinstance(each, QueueFull) for each in found) == 17
        assert service.count_unfinished() == 3
        engine.held.set()
        for info in found:
            if not isinstance(info, BaseException):
                assert (await finish(service, session, info)).state is State.FINISHED


async def test_an_event_is_recorded_again_until_it_is_and_nobody_waits_for_it():
    session, engine = SmallSession(), SmallEngine(some(5))
    session.failures = [Unavailable("down"), Unavailable("down")]
    async with open_service(engine) as service:
        info, _ = await ask(service, session, SQL)
        assert info.state is State.FINISHED
        await session.until_recorded()


async def test_a_statement_that_outlives_its_token_is_recorded_with_the_newest_of_its_user():
    """Short-lived tokens end before long statements do; and whoever rotates their secret ends it at will."""
    old, new, engine = SmallSession(), SmallSession(), SmallEngine(some(5))
    old.failures = [NotAuthenticated("The token is not good")] * 2
    engine.held = asyncio.Event()
    async with open_service(engine) as service:
        info = await service.submit(old, request(SQL))
        await until_running(engine)
        await service.get(new, info.id)
        engine.held.set()
        assert (await finish(service, new, info)).state is State.FINISHED
        event = await new.until_recorded()

    assert event.statement_id.startswith(info.id)
    assert old.events == []


async def test_many_statements_that_are_ended_at_any_moment_end_once_and_are_recorded_once():
    rng = random.Random(7)
    sessions = [SmallSession(f"user{at}") for at in range(4)]
    engine = SmallEngine(some(40), batch_rows=3)
    settings = QuerySettings(concurrent=3, queued=200, page_rows=5)
    sent: dict[str, list[str]] = {each.owner: [] for each in sessions}

    async def one(session: SmallSession) -> None:
        await asyncio.sleep(rng.random() * 0.05)
        info = await service.submit(session, request(SQL))
        sent[session.owner].append(info.id)
        number: int | None = 1
        while number is not None:
            if rng.random() < 0.1:
                await service.cancel(session, info.id)
                return
            try:
                page = await service.fetch(session, info.id, number, wait_s=rng.random() * 0.02)
            except QueryCancelled:
                return
            number = number if page is None else page.next

    async with open_service(engine, settings=settings) as service:
        await asyncio.gather(*(one(each) for each in sessions * 25))
        for session in sessions:
            own = service.list_own(session)
            states = {each.id: each.state for each in own}
            assert [each.error for each in own if each.state is State.FAILED] == []
            assert set(states) == set(sent[session.owner])
            assert set(states.values()) <= {State.FINISHED, State.CANCELED}
        assert engine.running == 0
        assert service.count_unfinished() == 0
        assert service._admission._running == 0
    for session in sessions:
        told = [each.statement_id.rpartition("-")[0] for each in session.events]
        assert sorted(told) == sorted(sent[session.owner])


# Distribution that fails.

WORKERS = [WorkerInfo("w0", is_healthy=True)]


def unavailable(_: EngineQuery) -> Exception:
    return EngineUnavailable("The driver died")


async def run_chain(
    local: SmallEngine | None,
    spark: SmallEngine,
    monkeypatch: pytest.MonkeyPatch,
    settings: QuerySettings | None = None,
) -> Any:
    """A statement that should be distributed."""
    monkeypatch.setattr(
        "cynosure.query.coordinator.distribution.try_distribute", lambda *_, **__: (True, "large")
    )
    session = SmallSession()
    async with open_service(local, settings=settings, spark=spark, cluster=spark) as service:
        return await ask(service, session, SQL)


@pytest.mark.parametrize(
    "error",
    [
        EngineUnavailable("The driver died"),
        OutOfMemory("A scan needs more memory than it may have"),
        ScanBroken("A scan failed in a way that is not expected"),
        StorageRefused("The storage refuses a file of the table"),
        StorageUnavailable("The storage does not answer"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_what_fails_before_any_row_through_no_fault_of_its_own_runs_locally(
    error: Exception, monkeypatch: pytest.MonkeyPatch
):
    local, spark = SmallEngine(some(3)), SmallEngine(lambda _: error, name="spark-isolated", workers=WORKERS)
    info, rows = await run_chain(local, spark, monkeypatch)
    assert (info.engine, info.reason, len(rows)) == ("local", "distribution failed, run locally", 3)
    assert len(spark.queries) == 1


@pytest.mark.parametrize(
    "error",
    [
        QueryFailed("A number is divided by zero", condition="DIVIDE_BY_ZERO"),
        SqlError("Spark does not accept the statement"),
        NotReadable("A file of the table is not Parquet"),
        DeadlinePassed("The statement took longer than it may"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_what_fails_on_what_it_says_or_reads_is_not_tried_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch
):
    local = SmallEngine(some(3))
    spark = SmallEngine(lambda _: error, name="spark-isolated", workers=WORKERS)
    with pytest.raises(type(error)):
        await run_chain(local, spark, monkeypatch)
    assert local.queries == []


async def test_what_a_native_scan_was_refused_before_any_row_runs_isolated_and_only_then_locally(
    monkeypatch: pytest.MonkeyPatch,
):
    refusal = StorageRefused("The storage refuses a file of the table", fix="query.spark.scan=isolated")
    local, isolated = SmallEngine(some(3)), SmallEngine(some(3), name="spark-isolated")
    native = SmallEngine(lambda _: refusal, name="spark-native", workers=WORKERS)
    native.renewing = isolated
    # It is Spark all the same, so it counts without a local engine too.
    for off in (QuerySettings(), QuerySettings(local_execution="off")):
        info, rows = await run_chain(local, native, monkeypatch, off)
        assert (info.engine, info.reason, len(rows)) == (
            "spark-isolated",
            "native scan was refused, run isolated",
            3,
        )
    assert local.queries == []
    isolated.answer = lambda _: refusal
    info, _ = await run_chain(local, native, monkeypatch)
    assert info.engine == "local"
    native.answer, native.error_after = some(3), (1, refusal)
    isolated.queries.clear()
    with pytest.raises(StorageRefused) as raised:
        await run_chain(local, native, monkeypatch)
    assert "isolated" in raised.value.fix
    assert isolated.queries == []


async def test_what_scans_too_much_to_run_locally_does_not(monkeypatch: pytest.MonkeyPatch):
    local, spark = SmallEngine(some(3)), SmallEngine(unavailable, name="spark-isolated", workers=WORKERS)
    with pytest.raises(EngineUnavailable):
        await run_chain(local, spark, monkeypatch, QuerySettings(fall_back_below=0))
    assert local.queries == []


async def test_nothing_is_tried_again_once_a_row_was_given(monkeypatch: pytest.MonkeyPatch):
    local = SmallEngine(some(3))
    spark = SmallEngine(some(3), name="spark-isolated", workers=WORKERS, batch_rows=1)
    spark.error_after = (1, EngineUnavailable("The driver died"))
    with pytest.raises(EngineUnavailable):
        await run_chain(local, spark, monkeypatch)
    assert local.queries == []
    spark.error_after = (0, EngineUnavailable("The driver died"))
    info, _ = await run_chain(local, spark, monkeypatch)
    assert info.engine == "local"


async def test_without_a_local_engine_the_failure_is_the_answer(monkeypatch: pytest.MonkeyPatch):
    spark = SmallEngine(unavailable, name="spark-isolated", workers=WORKERS)
    with pytest.raises(EngineUnavailable):
        await run_chain(None, spark, monkeypatch)
    refusing = SmallEngine(some(3), reason_against="lateral")
    with pytest.raises(EngineUnavailable):
        await run_chain(refusing, spark, monkeypatch)


async def test_local_execution_that_is_off_is_no_fallback_either(monkeypatch: pytest.MonkeyPatch):
    local = SmallEngine(some(3))
    spark = SmallEngine(lambda _: OutOfMemory("no"), name="spark-isolated", workers=WORKERS)
    with pytest.raises(OutOfMemory):
        await run_chain(local, spark, monkeypatch, QuerySettings(local_execution="off"))
    assert local.queries == []


async def test_local_execution_can_be_off():
    session, local = SmallSession(), SmallEngine(some(3))
    spark = SmallEngine(some(3), name="spark-isolated", workers=WORKERS)
    settings = QuerySettings(local_execution="off")
    async with open_service(local, settings=settings, spark=spark, cluster=spark) as service:
        info, _ = await ask(service, session, SQL)
        assert (info.engine, info.reason) == ("spark-isolated", "local execution is off")
    assert local.queries == []


async def test_results_that_nobody_fetches_are_bounded_in_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cynosure.query.coordinator.service._MOST_HELD_BYTES", 100)
    session, engine = SmallSession(), SmallEngine(some(10))
    async with open_service(engine) as service:
        infos = []
        for _ in range(3):
            info = await service.submit(session, request(SQL))
            infos.append(await finish(service, session, info))
            await asyncio.sleep(0.01)
        with pytest.raises(Expired):
            await service.fetch(session, infos[0].id, 1)
        assert await service.fetch(session, infos[-1].id, 1)


async def test_statements_are_measured():
    start_metrics()
    try:
        session = SmallSession()
        async with open_service(SmallEngine(some(5))) as service:
            await ask(service, session, SQL)
        async with open_service(SmallEngine(lambda _: QueryFailed("no"))) as service:
            with pytest.raises(QueryFailed):
                await ask(service, session, SQL)
        text = render().decode()
    finally:
        stop_metrics()
    assert 'cynosure_query_statements_total{engine="local",reason="no cluster",state="FINISHED"} 1.0' in text
    assert 'state="FAILED"' in text
    assert "cynosure_query_memory_utilization_ratio 0.0" in text
    assert "cynosure_query_result_rows_total 5.0" in text
