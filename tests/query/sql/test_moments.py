"""Times of tables as expressions of constants. That they are Spark's: tests/query/local."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from cynosure.query.errors import SqlError
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_view
from tests.query.sql.world import SESSION

NOW = datetime(2026, 3, 1, 5, 6, 7, 891_234, tzinfo=UTC)
AT_NOW = structs.replace(SESSION, now_us=int(NOW.timestamp() * 1_000_000))


def moment(text: str, zone: str = "UTC") -> str:
    session = structs.replace(AT_NOW, time_zone=zone)
    [mention] = mentions_of(parse_view(f"SELECT * FROM t TIMESTAMP AS OF {text} AS x"), session=session)
    assert mention.travel is not None
    assert mention.travel.timestamp_us is not None
    seconds, micros = divmod(mention.travel.timestamp_us, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros).isoformat()[:-6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now()", "2026-03-01T05:06:07.891234"),
        ("now() - INTERVAL 1 DAY", "2026-02-28T05:06:07.891234"),
        ("current_timestamp - INTERVAL '1 02:00:00' DAY TO SECOND", "2026-02-28T03:06:07.891234"),
        ("current_date()", "2026-03-01T00:00:00"),
        ("date_sub(current_date(), 7)", "2026-02-22T00:00:00"),
        ("CAST('2026-01-31' AS TIMESTAMP)", "2026-01-31T00:00:00"),
        ("TIMESTAMP '2024-03-31 10:00:00' - INTERVAL 1 MONTH", "2024-02-29T10:00:00"),
        ("date_trunc('HOUR', now())", "2026-03-01T05:00:00"),
        ("timestampadd(HOUR, -6, now())", "2026-02-28T23:06:07.891234"),
    ],
)
def test_a_time_is_an_expression_of_constants_at_the_statements_time(text: str, expected: str) -> None:
    assert moment(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'2026-01-31'", "2026-01-31T05:00:00"),
        ("current_date()", "2026-03-01T05:00:00"),
        ("date_trunc('DAY', now() - INTERVAL 1 HOUR)", "2026-02-28T05:00:00"),
        # The day has 23 hours, then 25.
        ("TIMESTAMP '2026-03-08 12:00:00' - INTERVAL 1 DAY", "2026-03-07T17:00:00"),
        ("TIMESTAMP '2026-03-08 12:00:00' - INTERVAL 1 DAY 1 HOUR", "2026-03-07T16:00:00"),
        ("TIMESTAMP '2026-03-08 02:30:00'", "2026-03-08T07:30:00"),
        ("TIMESTAMP '2026-11-01 01:30:00'", "2026-11-01T05:30:00"),
        ("'2026-01-31 00:00:00Z'", "2026-01-31T00:00:00"),
    ],
)
def test_days_and_local_times_are_those_of_the_sessions_zone(text: str, expected: str) -> None:
    assert moment(text, "America/New_York") == expected


@pytest.mark.parametrize(
    "text",
    [
        *("'yesterday'", "'2026-02-30'", "'2026-01-01 25:00:00'", "'2026-01-01 10:00:00 Nowhere/City'", "''"),
        *("a", "t.a", "(SELECT now())", "(SELECT max(day) FROM u)", "upper('2026-01-01')", "NULL", "TRUE"),
        *("INTERVAL 1 DAY", "now() - INTERVAL 1 MONTH 1 DAY", "now() - INTERVAL 'soon'", "now() - now()"),
        *("now() - INTERVAL 99999999 YEARS", "now() - INTERVAL '1.5' DAY", "1e9", "now() - 1", "now() * 2"),
        *("date_sub(now(), '7')", "date_trunc('EON', now())", "make_date(2026, 2, 30)", "1" * 30),
        "now()" + " - INTERVAL 1 SECOND" * 60,
    ],
)
def test_what_is_no_such_expression_is_refused_with_its_place_and_what_to_write(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        moment(text)
    assert (caught.value.line, bool(caught.value.fix)) == (1, True)


def test_all_expressions_that_are_compared_with_spark_are_understood() -> None:
    lines = Path(__file__).with_name("moments.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert line.startswith("#") or moment(line)
