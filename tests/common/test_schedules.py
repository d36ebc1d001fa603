"""Schedules: intervals and cron lines in UTC."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.common.schedules import MAX_CHARS, parse_schedule

US = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // US


@pytest.mark.parametrize(
    ("text", "after", "due"),
    [
        ("PT1M", "2026-03-01T00:00:30", "2026-03-01T00:01:30"),
        ("PT15M", "2026-03-01T00:00", "2026-03-01T00:15"),
        ("P1D", "2026-02-28T12:34", "2026-03-01T12:34"),
        (" P1DT6H ", "2026-01-01", "2026-01-02T06:00"),
        ("0 3 * * *", "2026-03-01T02:59:59", "2026-03-01T03:00"),
        ("0 3 * * *", "2026-03-01T03:00", "2026-03-02T03:00"),
        ("*/20 * * * *", "2026-03-01T00:41", "2026-03-01T01:00"),
        ("30 22 * * 5", "2026-03-01T00:00", "2026-03-06T22:30"),
        ("0 0 29 2 *", "2026-03-01T00:00", "2028-02-29T00:00"),
        ("0 4 L * *", "2026-02-01T00:00", "2026-02-28T04:00"),
        ("0 4 * jan mon-fri", "2026-02-01T00:00", "2027-01-01T04:00"),
    ],
)
def test_what_is_due_next(text: str, after: str, due: str) -> None:
    assert parse_schedule(text, field="schedule").next_after_us(at(after)) == at(due)


def test_an_interval_begins_at_once_and_a_cron_line_at_its_time() -> None:
    since = at("2026-03-01T12:00")

    assert parse_schedule("P1D", field="schedule").first_us(since) == since
    assert parse_schedule("0 3 * * *", field="schedule").first_us(since) == at("2026-03-02T03:00")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "daily",
        "1d",
        "PT0S",
        "PT59S",
        "-P1D",
        "P1M",
        "P1Y",
        "P4000D",
        "P99999999999D",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "0 25 * * *",
        "0 0 30 2 *",
        "@daily",
        "0 3 * * MOON",
        "² 3 * * *",
        "*/0 * * * *",
        "1 " * MAX_CHARS,
    ],
)
def test_all_else_is_refused_by_the_name_of_its_field(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_schedule(text, field="content.config.schedule")

    assert refused.value.field == "content.config.schedule"
    assert "PT15M" in refused.value.fix


@given(st.text("0123456789*/,-L#WMON ²PTDH.", max_size=24))
def test_whatever_is_written_is_understood_or_refused(text: str) -> None:
    try:
        schedule = parse_schedule(text, field="schedule")
    except BadInput:
        return

    now = at("2026-03-01T12:00")
    assert schedule.next_after_us(now) > now
    assert schedule.next_after_us(schedule.next_after_us(now)) - schedule.next_after_us(now) >= 60_000_000
