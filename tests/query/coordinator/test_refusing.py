"""What is refused at once leaves an event and a number, and no constant (I105, I108)."""

import pytest

from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.query.coordinator.refusing import redact_refused
from cynosure.query.coordinator.statement import State
from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.settings import QuerySettings
from cynosure.testing.small_engine import SmallEngine
from tests.query.coordinator.asking import ask, open_service, request
from tests.query.coordinator.test_life import SQL, SmallSession, some, until

pytestmark = pytest.mark.anyio


def redacted(text: str) -> str:
    return redact_refused(text, max_bytes=10_000)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT reflect('hunter2', 42) -- hunter2", "SELECT reflect ( ? , ? )"),
        ("SELECT a FROM parquet.`/x` WHERE b = X'AB' AND c = 1.5BD", None),
        ('WITH x AS (SELECT "hunter2") SELECT * FROM x TABLESAMPLE (7 PERCENT)', None),
        ("SELECT /*+ X('hunter2', 42) */ a + 42_000, 42abc FROM `t`", "SELECT ? a + ? , ? FROM `t`"),
        ("SELECT r'hunter2', interval '42' day, DATE'2042-01-01', 42L", None),
        # Commands: what stands behind their first word may be anything.
        ("SET password=hunter2", "SET"),
        ("insert into t values ('hunter2')", "INSERT"),
        ("CREATE TABLE t AS SELECT 'hunter2'", "CREATE"),
        ("EXPLAIN SELECT reflect('hunter2')", "EXPLAIN"),
        # Nothing that can be read.
        ("SELECT FROM WHERE hunter2 hunter2 hunter2", "SELECT"),
        ("SELECT a FROM t WHERE pass = hunter2 hunter2 = 42", "SELECT"),
        ("hunter2", ""),
        ("'hunter2'", ""),
        ("`hunter2` is the word", ""),
        ("42", ""),
        ("", ""),
        ("SELECT 'hunter2", ""),
        ("SELECT " + "(" * 200 + "42", ""),
        ("SELECT 'hunter2', " + "1, " * 10_000 + "1", ""),
    ],
)
def test_names_and_words_of_a_query_are_recorded_and_no_constant(text: str, shown: str | None):
    found = redacted(text)
    assert "hunter2" not in found
    assert "42" not in found
    assert shown is None or found == shown


@pytest.mark.parametrize(
    ("sql", "kind", "shown"),
    [
        ("SELECT reflect('java.lang.Runtime', 'hunter2')", NotAllowed, "SELECT reflect ( ? , ? )"),
        ("SET spark.x=hunter2", NotAllowed, "SET"),
        ("SELECT FROM WHERE 'hunter2'", SqlError, "SELECT"),
    ],
)
async def test_a_refused_statement_is_recorded_and_counted_once(sql: str, kind: type[SqlError], shown: str):
    session, engine = SmallSession(), SmallEngine(some(3))
    start_metrics()
    try:
        async with open_service(engine) as service:
            with pytest.raises(kind):
                await service.submit(session, request(sql))
            event = await session.until_recorded()
        text = render().decode()
    finally:
        stop_metrics()
    assert (event.outcome, event.error, event.sql) == ("FAILED", kind.__name__, shown)
    assert (event.engine, event.reason, event.rows, event.tables) == ("none", "refused", 0, ())
    assert 'cynosure_query_statements_total{engine="none",reason="refused",state="FAILED"} 1.0' in text
    assert engine.queries == []


async def test_the_id_of_a_refused_statement_does_not_hide_the_event_of_the_next():
    session, engine = SmallSession(), SmallEngine(some(3))
    id_ = "00000000-0000-4000-8000-000000000001"
    async with open_service(engine) as service:
        with pytest.raises(NotAllowed):
            await service.submit(session, request("SET x=1", statement_id=id_))
        info, _ = await ask(service, session, SQL, statement_id=id_)
        assert (info.id, info.state) == (id_, State.FINISHED)
        await until(lambda: len(session.events) == 2)
    # The catalog keeps one event for an id.
    assert len({each.statement_id for each in session.events}) == 2


async def test_a_text_that_is_too_long_is_recorded_without_a_word_of_it():
    session = SmallSession()
    async with open_service(SmallEngine(some(3)), settings=QuerySettings(max_sql_bytes=20)) as service:
        with pytest.raises(SqlError):
            await service.submit(session, request("SELECT 'hunter2hunter2hunter2'"))
        assert (await session.until_recorded()).sql == ""
