"""The local engine: rows while they come, cancel, deadline, memory, failures of scans, what remains."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError
from cynosure.iceberg import types as iceberg
from cynosure.query.engine import EngineQuery, FragmentReport, Relation, RelationColumn
from cynosure.query.errors import (
    DeadlinePassed,
    EngineUnavailable,
    NotReadable,
    OutOfMemory,
    QueryCancelled,
    QueryFailed,
)
from cynosure.query.local import left_scans, relation_stream
from cynosure.query.local.database import Database
from cynosure.query.local.engine import LocalEngine
from cynosure.query.scan.memory import PROCESS, Budget
from cynosure.query.scan.port import ScanProgress, ScanWatch
from cynosure.query.scan_task import Credentials, ScanTask
from cynosure.query.settings import LocalSettings
from tests.query.local.world import collect, make_engine, make_query

pytestmark = pytest.mark.anyio
SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])
TABLE = {"t": pa.table({"a": [1, 2, 3], "s": ["x", "y", "secret-value"]}, SCHEMA)}
ROWS = 4_000
HELD_BYTES = 2**20
PATIENCE_S = 60
"""How long the store is silent at most."""
FRAME = "rows between 1 preceding and current row"


class Scans:
    """Stands for `governed_batches`: as many batches as are wanted, and what is seen of them."""

    def __init__(self, batches: int = 1_000, *, error: Exception | None = None, width: int = 200) -> None:
        self.batches = batches
        self.error = error
        self.width = width
        self.given = 0
        self.ended = 0
        self.threads: set[int] = set()
        self.credentials: list[int] = []

    def __call__(self, task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
        self.threads.add(threading.get_ident())
        try:
            for number in range(self.batches):
                self.credentials.append(watch.credentials().number)
                watch.advance(ScanProgress(number, number * ROWS, number))
                if self.error and number == 2:
                    raise self.error
                self.given += 1
                values = range(number * ROWS, (number + 1) * ROWS)
                texts = [f"{each:0{self.width}d}" for each in values]
                yield pa.record_batch({"a": list(values), "s": texts}, SCHEMA)
        finally:
            self.ended += 1


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Scans:
    scans = Scans()
    monkeypatch.setattr(relation_stream, "governed_batches", scans)
    return scans


def scan_query(sql: str, *, fragments: int = 1, renew: Any = None, timeout_s: float = 100) -> EngineQuery:
    """A query over relations that are scanned: all of them alike."""
    query = make_query(sql, TABLE, deadline_s=SystemClock().monotonic_s() + timeout_s)
    tasks = tuple(
        ScanTask("q", f"f{i}", (), (), b"", (1, 2), (), credentials=Credentials(1, {}, 1))
        for i in range(fragments)
    )
    columns = (RelationColumn("a", iceberg.LONG), RelationColumn("s", iceberg.STRING))
    relations = tuple(
        Relation(each.view, each.shown, columns, tasks, renew=renew) for each in query.relations
    )
    return EngineQuery(query.id, query.tree, relations, query.columns, query.deadline_s, query.session)


async def first_of(batches: AsyncIterator[pa.RecordBatch]) -> pa.RecordBatch:
    async for each in batches:
        return each
    raise AssertionError("There is no batch.")


async def wait_until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - threads move it
            await asyncio.sleep(0.01)


async def test_rows_and_reports(engine: LocalEngine, scans: Scans) -> None:
    scans.batches = 3
    reports: list[FragmentReport] = []
    query = scan_query("select count(*) as n, sum(a) as total from t where s <> ''", fragments=3)
    table = await collect(engine, query, reports)
    assert table.to_pylist() == [{"n": 9 * ROWS, "total": 3 * sum(range(3 * ROWS))}]
    await wait_until(lambda: len(reports) == 3)
    assert {each.fragment_id for each in reports} == {"f0", "f1", "f2"}
    assert all(each.is_success and each.rows == 3 * ROWS and each.worker == "local" for each in reports)
    assert len(scans.threads) <= relation_stream.AT_ONCE
    await engine.close()


async def test_whoever_does_not_pull_holds_the_scan_back(engine: LocalEngine, scans: Scans) -> None:
    query = scan_query("select a, s from t where a >= 0")
    results = await engine.execute(query, lambda _: None)
    assert scans.given == 0
    assert engine.list_running(query.id) == []
    batches = results.batches()
    await first_of(batches)
    await asyncio.sleep(0.5)
    assert 0 < scans.given < scans.batches // 2
    [reading] = engine.list_running(query.id) or ()
    assert (reading.fragment_id, reading.worker) == ("f0", "local")
    assert reading.rows > 0
    assert engine.list_running("another") == []
    await results.close()
    assert engine.list_running(query.id) == []
    assert scans.ended == 1
    await engine.close()


async def test_cancel_ends_the_scan(engine: LocalEngine, scans: Scans) -> None:
    scans.batches = 10**9
    results = await engine.execute(scan_query("select sum(a) from t", fragments=2), lambda _: None)

    async def read() -> None:
        async for _ in results.batches():
            pass

    reading = asyncio.create_task(read())
    await wait_until(lambda: len(scans.threads) == 2 and scans.given > 3)
    await results.close()
    with pytest.raises(QueryCancelled):
        await reading
    await wait_until(lambda: scans.ended == 2)
    await results.close()
    await engine.close()


async def test_cancel_while_duckdb_calculates(engine: LocalEngine) -> None:
    many = {"t": pa.table({"a": list(range(60_000))}, pa.schema([("a", pa.int64())]))}
    query = make_query("select count(*) from t x cross join t y where x.a * y.a % 7 = 3", many)
    results = await engine.execute(query, lambda _: None)
    reading = asyncio.create_task(first_of(results.batches()))
    await asyncio.sleep(0.3)
    async with asyncio.timeout(20):
        await results.close()
    with pytest.raises(QueryCancelled):
        await reading
    await engine.close()


async def test_reader_that_is_cancelled_leaves_nothing(engine: LocalEngine, scans: Scans) -> None:
    scans.batches = 10**9
    results = await engine.execute(scan_query("select max(a) from t"), lambda _: None)
    reading = asyncio.create_task(first_of(results.batches()))
    await wait_until(lambda: scans.given > 1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await results.close()
    assert scans.ended == 1
    await engine.close()


async def test_deadline(engine: LocalEngine, scans: Scans) -> None:
    scans.batches = 10**9
    results = await engine.execute(scan_query("select max(a) from t", timeout_s=0.5), lambda _: None)
    with pytest.raises(DeadlinePassed):
        await first_of(results.batches())
    assert scans.ended == len(scans.threads)  # none: the deadline may pass before it begins
    await engine.close()


class SilentStore:
    """Stands for `governed_batches` of a store that says nothing until it is let go, and holds memory."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.waiting: set[threading.Thread] = set()

    def __call__(self, task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
        with Budget(2**30).holding(HELD_BYTES):
            self.waiting.add(threading.current_thread())
            assert self.let_go.wait(PATIENCE_S)
            watch.advance(ScanProgress())
            yield pa.record_batch({"a": [2], "s": ["y"]}, SCHEMA)

    async def wait_for_end(self) -> None:
        """Of all threads."""
        self.let_go.set()
        await wait_until(lambda: not any(each.is_alive() for each in self.waiting))


@pytest.fixture
async def silent(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SilentStore]:
    silent = SilentStore()
    monkeypatch.setattr(relation_stream, "governed_batches", silent)
    yield silent
    await silent.wait_for_end()


@contextmanager
def soon() -> Iterator[None]:
    """Much sooner than the store lets go."""
    begun_s = time.monotonic()
    yield
    assert time.monotonic() - begun_s < 6


async def test_a_deadline_ends_a_statement_whose_store_is_silent(
    engine: LocalEngine, silent: SilentStore
) -> None:
    """I108."""
    with soon():
        results = await engine.execute(
            scan_query("select max(a) from t", fragments=2, timeout_s=1), lambda _: None
        )
        with pytest.raises(DeadlinePassed):
            await first_of(results.batches())
    assert len(silent.waiting) == 2
    with soon():
        await engine.close()


@pytest.mark.parametrize("by", ["close", "task", "engine"])
async def test_a_cancel_ends_a_statement_whose_store_is_silent(
    by: str, engine: LocalEngine, silent: SilentStore
) -> None:
    query = scan_query("select max(x.a) from t x join t y on x.a = y.a join t z on x.a = z.a")
    results = await engine.execute(query, lambda _: None)
    reading = asyncio.create_task(first_of(results.batches()))
    await wait_until(lambda: silent.waiting)
    with soon():
        match by:
            case "close":
                await results.close()
            case "task":
                reading.cancel()
            case "engine":
                await engine.close()
        with pytest.raises((QueryCancelled, asyncio.CancelledError)):
            await reading
    assert engine.list_running(query.id) == []
    await engine.close()


async def test_a_scan_that_is_left_behind_holds_its_memory_until_it_ends_and_tells_nothing(
    engine: LocalEngine, silent: SilentStore
) -> None:
    before = PROCESS.held_bytes
    reports: list[FragmentReport] = []
    results = await engine.execute(scan_query("select max(a) from t", fragments=2), reports.append)
    reading = asyncio.create_task(first_of(results.batches()))
    await wait_until(lambda: len(silent.waiting) == 2)
    await results.close()
    with pytest.raises(QueryCancelled):
        await reading
    assert PROCESS.held_bytes == before + 2 * HELD_BYTES
    assert engine._left.count() == 2
    await silent.wait_for_end()
    assert PROCESS.held_bytes == before
    assert engine._left.count() == 0
    await asyncio.sleep(0)
    assert reports == []
    await engine.close()


async def test_while_too_many_scans_are_left_behind_no_other_begins(
    engine: LocalEngine, silent: SilentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_scans, "MOST", 2)
    results = await engine.execute(
        scan_query("select max(a) from t", fragments=2, timeout_s=1), lambda _: None
    )
    with pytest.raises(DeadlinePassed):
        await first_of(results.batches())
    with pytest.raises(EngineUnavailable, match="does not answer"):
        await engine.execute(scan_query("select max(a) from t"), lambda _: None)
    # What reads no store goes on.
    assert (await collect(engine, make_query("select max(a) as m from t", TABLE))).num_rows == 1
    await silent.wait_for_end()
    assert (await collect(engine, scan_query("select max(a) as m from t"))).to_pylist() == [{"m": 2}]
    await engine.close()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotReadable("A file is not what it must be"), NotReadable),
        (OutOfMemory("A scan would need more memory"), OutOfMemory),
        (RuntimeError("s3://secret-bucket/path"), NotReadable),
    ],
)
async def test_failing_scan(
    error: Exception, told: type[CynosureError], engine: LocalEngine, scans: Scans
) -> None:
    scans.error = error
    reports: list[FragmentReport] = []
    with pytest.raises(told) as failure:
        await collect(engine, scan_query("select max(s) from t"), reports)
    assert "secret" not in str(failure.value)
    await wait_until(lambda: reports)
    assert not reports[0].is_success
    await engine.close()


async def test_limit_ends_the_scan_early(engine: LocalEngine, scans: Scans) -> None:
    reports: list[FragmentReport] = []
    table = await collect(engine, scan_query("select a from t limit 5"), reports)
    assert table.num_rows == 5
    assert scans.given < scans.batches
    await wait_until(lambda: reports)
    assert reports[0].is_success
    await engine.close()


async def test_newer_credentials_are_used(engine: LocalEngine, scans: Scans) -> None:
    async def renew() -> Credentials:
        return Credentials(2, {}, SystemClock().now_us() // 1_000 + 3_600_000)

    scans.batches = 10**9
    query = scan_query("select max(a) from t", renew=renew)
    results = await engine.execute(query, lambda _: None)
    reading = asyncio.create_task(first_of(results.batches()))
    await wait_until(lambda: 2 in scans.credentials)
    await results.close()
    with pytest.raises(QueryCancelled):
        await reading
    await engine.close()


async def test_out_of_memory_without_spilling(tmp_path: Path, scans: Scans) -> None:
    engine = make_engine(
        tmp_path, spill_to_disk=False, local=LocalSettings(memory_limit=48 * 2**20, threads=2)
    )
    scans.batches = 100
    with pytest.raises(OutOfMemory) as failure:
        await collect(engine, scan_query("select s, a from t order by s desc"))
    assert "query.local.memory_limit" in failure.value.fix
    scans.batches = 1
    assert (await collect(engine, scan_query("select count(*) as n from t"))).to_pylist() == [{"n": ROWS}]
    await engine.close()


async def test_spilling(tmp_path: Path, scans: Scans) -> None:
    engine = make_engine(tmp_path, local=LocalSettings(memory_limit=256 * 2**20, threads=2))
    scans.batches, scans.width = 100, 600
    results = await engine.execute(scan_query("select s, a from t order by a desc"), lambda _: None)
    batches = results.batches()
    first = await first_of(batches)
    assert first.column("a")[0].as_py() == 100 * ROWS - 1
    assert any(each.stat().st_size for each in tmp_path.rglob("duckdb_temp*"))
    await results.close()
    await engine.close()
    assert not list(tmp_path.rglob("*"))


async def test_a_join_larger_than_memory_spills(tmp_path: Path, scans: Scans) -> None:
    scans.batches, scans.width = 60, 600
    join = scan_query("select count(*) as n, max(x.s || y.s) as s from t x join t y on x.a = y.a")
    local = LocalSettings(memory_limit=112 * 2**20, threads=2)
    # Both sides have about 150 MB, so neither fits.
    without = make_engine(tmp_path / "without", spill_to_disk=False, local=local)
    with pytest.raises(OutOfMemory):
        await collect(without, join)
    await without.close()
    engine = make_engine(tmp_path / "with", local=local)
    rows = await collect(engine, join)
    last = f"{60 * ROWS - 1:0600d}"
    assert rows.to_pylist() == [{"n": 60 * ROWS, "s": last + last}]
    await engine.close()
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]


async def test_memory_in_use(tmp_path: Path, scans: Scans) -> None:
    engine = make_engine(tmp_path, local=LocalSettings(memory_limit=256 * 2**20, threads=2))
    assert engine.memory_ratio() == 0.0
    results = await engine.execute(scan_query("select s, a from t order by a desc"), lambda _: None)
    scans.batches = 50
    await first_of(results.batches())
    assert 0.05 < engine.memory_ratio() <= 1.0
    await results.close()
    await engine.close()


async def test_values_are_not_told(engine: LocalEngine) -> None:
    odd = {"t": pa.table({"d": [1e300, 424242.0]}), "u": pa.table({"i": [2_000_000_001, 2_000_000_002]})}
    for sql, condition in (
        ("select cast(d as int) from t", "CAST_OVERFLOW"),
        ("select i * i * i from u", "ARITHMETIC_OVERFLOW"),
        ("select (select d from t) as x", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
    ):
        with pytest.raises(QueryFailed) as failure:
            await collect(engine, make_query(sql, odd))
        assert failure.value.condition == condition
        for value in ("424242", "1e", "200000000", "30000000"):
            assert value not in f"{failure.value} {failure.value.fix} {failure.value.__cause__}"
    await engine.close()


async def test_two_statements_do_not_see_each_other(engine: LocalEngine) -> None:
    one = await engine.execute(make_query("select a from t", TABLE), lambda _: None)
    other_table = {"t": pa.table({"a": [7]}, pa.schema([("a", pa.int64())]))}
    assert (await collect(engine, make_query("select a from t", other_table))).to_pylist() == [{"a": 7}]
    rows = [row for batch in [each async for each in one.batches()] for row in batch.to_pylist()]
    assert sorted(row["a"] for row in rows) == [1, 2, 3]
    await engine.close()


async def test_outside_of_the_subset(engine: LocalEngine) -> None:
    for sql, reason in (
        ("select rlike(s, 'x') from t", "function RLIKE"),
        ("select explode(array(a)) from t", "EXPLODE"),
        ("select a from t where s = 5", "a comparison of string, int"),
        ("select cast(s as int) from t", "a cast of string, int"),
        # Spark refuses NULL as a whole condition, and frames of ranks.
        ("select a from t where null", "AND of null"),
        ("select a from t join (select 1) on null", "AND of null"),
        ("select case when null then 1 end from t", "CASE of null"),
        ("select count(*) filter (where null) from t", "CASE of null"),
        (f"select rank() over (order by a {FRAME}) from t", "a rank with a frame"),
        (f"select ntile(2) over (order by a {FRAME}) from t", "a rank with a frame"),
    ):
        query = make_query(sql, TABLE)
        assert engine.find_reason_against(query) == reason, sql
        with pytest.raises(EngineUnavailable):
            await engine.execute(query, lambda _: None)
    await engine.close()


async def test_in_with_a_subquery_is_a_condition_and_no_value(engine: LocalEngine) -> None:
    some = "(select a from t)"
    for sql in (
        f"select a in {some} from t",
        f"select not a in {some} from t",
        f"select a from t where (a in {some}) is null",
        f"select a from t where coalesce(a not in {some}, true)",
        f"select a from t where (a in {some}) = false",
        f"select a from t where not (a = 1 and a in {some})",
        f"select a from t where not not a in {some}",
        f"select nvl(a in {some}, true) from t",
        f"select case true when a in {some} then 1 end from t",
        f"select count(*) from t group by a in {some}",
    ):
        reason = engine.find_reason_against(make_query(sql, TABLE))
        assert reason == "IN with a subquery as a value", sql
    for sql in (
        f"select a from t where a = 1 or (a > 1 and a not in {some})",
        f"select t.a from t join t as u on t.a = u.a and not (t.a in {some})",
        f"select a from t group by a having a in {some} or count(*) > 1",
        f"select case when a in {some} then 1 when not (a in {some}) then 2 end from t",
        f"select if(a in {some}, 1, 0) from t",
        f"select count(*) filter (where a in {some}) from t",
    ):
        assert engine.find_reason_against(make_query(sql, TABLE)) is None, sql
    await engine.close()


async def test_fields_of_a_struct_are_not_left_out(engine: LocalEngine) -> None:
    nested = {"t": pa.table({"a": [1], "st": [{"x": 1, "y": {"z": 2}}]})}
    for sql in ("select a, st.* from t", "select a, t.st.* from t", "select a, st.y.* from t"):
        assert engine.find_reason_against(make_query(sql, nested)) == "a star of a struct", sql
    await engine.close()


async def test_relation_without_columns(engine: LocalEngine) -> None:
    query = make_query("select count(*) as n from t", TABLE)
    assert query.relations[0].columns == ()
    assert (await collect(engine, query)).to_pylist() == [{"n": 3}]
    await engine.close()


async def test_relation_without_fragments(engine: LocalEngine) -> None:
    query = scan_query("select count(*) as n, max(s) as m from t", fragments=0)
    assert (await collect(engine, query)).to_pylist() == [{"n": 0, "m": None}]
    await engine.close()


async def test_names_of_columns(engine: LocalEngine) -> None:
    query = make_query("select a, a as a, sum(a) over (), a + 1, upper(s), count(*) over () c from t", TABLE)
    table = await collect(engine, query)
    assert table.column_names[:2] == ["a", "a"]
    assert table.column_names[3:] == ["(a + 1)", "upper(s)", "c"]
    await engine.close()


async def test_a_database_that_failed_takes_no_other_with_it(
    engine: LocalEngine, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All statements of the one that failed say so, each when it is asked for rows: some of them late."""
    scans.batches = 40

    def fail() -> None:
        raise RuntimeError("INTERNAL Error: the database has been invalidated")

    first, second = [await engine.execute(scan_query("select a from t"), lambda _: None) for _ in range(2)]
    monkeypatch.setattr(first, "_next", fail)
    with pytest.raises(EngineUnavailable):
        await first_of(first.batches())
    third = await engine.execute(scan_query("select count(*) as n from t"), lambda _: None)
    newer = engine._database
    monkeypatch.setattr(second, "_next", fail)
    with pytest.raises(EngineUnavailable):
        await first_of(second.batches())
    assert engine._database is newer
    assert (await first_of(third.batches())).to_pylist() == [{"n": 40 * ROWS}]
    await engine.close()


async def test_there_is_one_database_whoever_asks_for_it_first(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question whose statement was cancelled meanwhile goes on in its thread, beside the next one."""
    opened: list[Database] = []

    class Slow(Database):
        def __init__(self, *settings: Any) -> None:
            time.sleep(0.2)
            super().__init__(*settings)
            opened.append(self)

    monkeypatch.setattr("cynosure.query.local.engine.Database", Slow)
    queries = [make_query("select a from t", TABLE) for _ in range(2)]
    asked = [asyncio.to_thread(engine.find_reason_against, each) for each in queries]
    assert await asyncio.gather(*asked) == [None, None]
    assert len(opened) == 1
    await engine.close()


async def test_after_close_nothing_runs(engine: LocalEngine, scans: Scans) -> None:
    scans.batches = 10**9
    results = await engine.execute(scan_query("select max(a) from t"), lambda _: None)
    reading = asyncio.create_task(first_of(results.batches()))
    await wait_until(lambda: scans.given > 1)
    await engine.close()
    with pytest.raises(QueryCancelled):
        await reading
    assert scans.ended == 1
