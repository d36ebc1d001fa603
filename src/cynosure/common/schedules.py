"""When something that is done again and again is due: an ISO 8601 duration, or a cron line in UTC.

Must not break: what is due next is a pure function of the text and of when it was last done, so that every
server comes to the same time.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from cronsim import CronSim, CronSimError

from cynosure.common.errors import BadInput
from cynosure.common.quantities import parse_duration

SHORTEST: Final = timedelta(minutes=1)
LONGEST: Final = timedelta(days=3660)
MAX_CHARS: Final = 200
_US: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS: Final = 5
_FIX: Final = (
    "Use an ISO 8601 duration of a minute or more, such as PT15M or P1D, "
    "or a cron line of five fields in UTC, such as '0 3 * * *'."
)


class Schedule(Protocol):
    """When something is due again."""

    @property
    def text(self) -> str:
        """As it was written."""
        ...

    def next_after_us(self, after_us: int) -> int:
        """The first time after this one, in microseconds since 1970."""
        ...

    def first_us(self, since_us: int) -> int:
        """When something is due for the first time that is wanted since then: for an interval at once."""
        ...


class Interval:
    """Again and again after the same time."""

    __slots__ = ("_every_us", "text")

    def __init__(self, text: str, every: timedelta) -> None:
        self.text = text
        self._every_us = every // _US

    def next_after_us(self, after_us: int) -> int:
        """See `Schedule`."""
        return after_us + self._every_us

    def first_us(self, since_us: int) -> int:
        """See `Schedule`."""
        return since_us


class CronLine:
    """At the times of a cron line, in UTC."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def next_after_us(self, after_us: int) -> int:
        """See `Schedule`."""
        return (next(CronSim(self.text, _EPOCH + timedelta(microseconds=after_us))) - _EPOCH) // _US

    def first_us(self, since_us: int) -> int:
        """See `Schedule`. A time of the day was named, so it is kept the first time, too."""
        return self.next_after_us(since_us)


def parse_schedule(text: str, *, field: str) -> Schedule:
    """What the text says; `BadInput` when it is neither a duration of a minute or more nor a cron line."""
    text = text.strip()
    if len(text) > MAX_CHARS:
        raise BadInput("A schedule is too long", field=field, fix=_FIX, max_chars=MAX_CHARS)
    if len(text.split()) == _FIELDS:
        return _parse_cron(text, field)
    try:
        # Only ISO 8601: what else is a duration in settings is none to engines that read the same policy.
        every = parse_duration(text if text.startswith("P") else "")
    except ValueError:
        raise BadInput(
            "A schedule is neither a duration nor a cron line", field=field, fix=_FIX, value=text
        ) from None
    if not SHORTEST <= every <= LONGEST:
        raise BadInput("A schedule is too short or too long", field=field, fix=_FIX, value=text)
    return Interval(text, every)


def _parse_cron(text: str, field: str) -> Schedule:
    try:
        # Asked once: some lines are well formed and never come, such as the 30th of February.
        next(CronSim(text, _EPOCH))
    except (CronSimError, StopIteration) as error:
        raise BadInput(
            "A cron line cannot be read", field=field, fix=_FIX, value=text, reason=str(error)
        ) from None
    return CronLine(text)
