"""Hours of the day, in UTC, in which maintenance may begin: `22:00-06:00`, on some days of the week.

Must not break: a window that ends before it begins goes over midnight, and belongs to the day it begins on.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MINUTES: Final = 24 * 60
_DAY_US: Final = 86_400_000_000
_MINUTE_US: Final = 60_000_000
_FIRST_WEEKDAY: Final = _EPOCH.weekday()


class Window(Struct, frozen=True):
    """When work may begin. The last minute is not in it."""

    begin_minute: int = 0
    end_minute: int = _DAY_MINUTES
    """Larger than a day for one that goes over midnight."""
    days: frozenset[int] = frozenset(range(7))
    """On which it begins; Monday is 0."""

    def is_open(self, now_us: int) -> bool:
        """Whether work may begin now."""
        return self.next_open_us(now_us) == now_us

    def next_open_us(self, now_us: int) -> int:
        """The first time from now on at which work may begin."""
        today = now_us // _DAY_US
        # From yesterday on: its window may last into today. A week later every day was looked at.
        for day in range(today - 1, today + 8):
            if (day + _FIRST_WEEKDAY) % 7 not in self.days:
                continue
            begin_us = day * _DAY_US + self.begin_minute * _MINUTE_US
            if now_us < day * _DAY_US + self.end_minute * _MINUTE_US:
                return max(now_us, begin_us)
        raise AssertionError("a window opens on no day")

    def __str__(self) -> str:
        begin = f"{self.begin_minute // 60:02}:{self.begin_minute % 60:02}"
        # The end of a day is written as that, and not as the beginning of the next.
        end = self.end_minute if self.end_minute == _DAY_MINUTES else self.end_minute % _DAY_MINUTES
        hours = f"{begin}-{end // 60:02}:{end % 60:02}"
        return (
            hours
            if len(self.days) == len(DAYS)
            else f"{hours} {','.join(DAYS[d] for d in sorted(self.days))}"
        )


ALWAYS: Final = Window()


def parse_hours(text: str) -> tuple[int, int]:
    """Begin and end in minutes; `ValueError` when it is no pair of times, or the two are the same."""
    match = _HOURS.fullmatch(text.strip())
    if match is None:
        raise ValueError("not two times of the day")
    begin, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if begin == end or end > _DAY_MINUTES:
        raise ValueError("not a time between two others")
    return begin, end if end > begin else end + _DAY_MINUTES


def parse_days(text: str) -> frozenset[int]:
    """Days of the week, such as `sat,sun` or `mon-fri`; `ValueError` for anything else."""
    found: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.strip().partition("-")
        begin = DAYS.index(first.strip())
        end = DAYS.index(last.strip()) if dash else begin
        # `fri-mon` goes over the end of the week.
        found.update(day % 7 for day in range(begin, end + 1 + (7 if end < begin else 0)))
    return frozenset(found)


def to_datetime(time_us: int) -> datetime:
    """For people and answers."""
    return _EPOCH + timedelta(microseconds=time_us)
