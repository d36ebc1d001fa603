"""Hours in which maintenance may begin."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.catalog.policies.windows import ALWAYS, DAYS, Window, parse_days, parse_hours, to_datetime

US = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> int:
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // US


def window(hours: str, days: str = "mon-sun") -> Window:
    return Window(*parse_hours(hours), parse_days(days))


# 2026-03-02 is a Monday.
@pytest.mark.parametrize(
    ("hours", "days", "now", "opens"),
    [
        ("08:00-10:00", "mon-sun", "2026-03-02T08:00", "2026-03-02T08:00"),
        ("08:00-10:00", "mon-sun", "2026-03-02T09:59:59", "2026-03-02T09:59:59"),
        ("08:00-10:00", "mon-sun", "2026-03-02T10:00", "2026-03-03T08:00"),
        ("08:00-10:00", "mon-sun", "2026-03-02T07:00", "2026-03-02T08:00"),
        ("22:00-06:00", "mon-sun", "2026-03-02T23:00", "2026-03-02T23:00"),
        ("22:00-06:00", "mon-sun", "2026-03-02T05:59", "2026-03-02T05:59"),
        ("22:00-06:00", "mon-sun", "2026-03-02T06:00", "2026-03-02T22:00"),
        ("22:00-06:00", "fri", "2026-03-07T05:00", "2026-03-07T05:00"),
        ("22:00-06:00", "fri", "2026-03-06T05:00", "2026-03-06T22:00"),
        ("22:00-06:00", "fri", "2026-03-07T06:00", "2026-03-13T22:00"),
        ("00:00-24:00", "sat,sun", "2026-03-02T12:00", "2026-03-07T00:00"),
        ("00:00-24:00", "fri-mon", "2026-03-03T12:00", "2026-03-06T00:00"),
    ],
)
def test_when_a_window_opens(hours: str, days: str, now: str, opens: str) -> None:
    found = window(hours, days)

    assert to_datetime(found.next_open_us(at(now))) == to_datetime(at(opens))
    assert found.is_open(at(now)) == (now == opens)


@pytest.mark.parametrize(
    "text", ["", "8-10", "08:00", "08:00-08:00", "24:00-06:00", "08:60-10:00", "08:00-24:30"]
)
def test_hours_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="not "):
        parse_hours(text)


@pytest.mark.parametrize("text", ["", "monday", "mon,", "mon-", "8"])
def test_days_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        parse_days(text)


minutes = st.integers(0, 24 * 60 - 1)


@given(minutes, minutes, st.sets(st.sampled_from(DAYS), min_size=1), st.integers(0, 10 * 86_400))
def test_it_is_what_a_walk_by_the_minute_finds(begin: int, end: int, days: set[str], second: int) -> None:
    if begin == end:
        return
    found = window(f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}", ",".join(days))
    now = at("2026-03-02") + second * 1_000_000

    def is_in(time_us: int) -> bool:
        time = to_datetime(time_us)
        minute = time.hour * 60 + time.minute
        today, yesterday = DAYS[time.weekday()] in days, DAYS[time.weekday() - 1] in days
        if begin < end:
            return today and begin <= minute < end
        return (today and minute >= begin) or (yesterday and minute < end)

    assert found.is_open(now) == is_in(now)
    opens = found.next_open_us(now)
    assert is_in(opens)
    assert opens >= now
    assert opens == now or not is_in(opens - 1)


def test_windows_as_people_read_them() -> None:
    assert str(window("22:00-06:00")) == "22:00-06:00"
    assert str(window("01:00-24:00", "sat,sun")) == "01:00-24:00 sat,sun"
    assert str(ALWAYS) == "00:00-24:00"
