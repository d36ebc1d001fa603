"""A check tells what a storage did, in order, and ends."""

import asyncio

import pytest

from cynosure.catalog.checking.steps import CHECK_S, Finding, Skipped, Steps
from cynosure.common.clock import SystemClock
from cynosure.storage.errors import StorageRefused

pytestmark = pytest.mark.anyio


class LateClock(SystemClock):
    """A clock that can be put forward."""

    late_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.late_s


async def works() -> None:
    """Does."""


async def refuses() -> None:
    raise StorageRefused(
        "It refuses", fix="Ask nicely.", location="s3://b/x", status=403, code="", extra=None
    )


async def finds() -> None:
    raise Finding("It lies", fix="Take another.", opened="read")


async def skips() -> None:
    raise Skipped("There is none", fix="Have one.")


async def test_each_outcome_is_told_with_its_reason_and_its_fix() -> None:
    steps = Steps(SystemClock())

    for act in (works, refuses, finds, skips):
        await steps.run(act.__name__, "s3://b", act)

    told = [(each.name, each.outcome, each.message, each.fix, each.details) for each in steps.done]
    assert told == [
        ("works", "ok", "", "", {}),
        ("refuses", "failed", "It refuses", "Ask nicely.", {"status": "403"}),
        ("finds", "failed", "It lies", "Take another.", {"opened": "read"}),
        ("skips", "skipped", "There is none", "Have one.", {}),
    ]


async def test_a_step_that_hangs_is_given_up() -> None:
    steps = Steps(SystemClock(), step_s=0.01)

    step = await steps.run("hang", "s3://b", asyncio.Event().wait)

    assert (step.outcome, step.message) == ("failed", "The storage took too long")


async def test_no_step_begins_after_the_time_of_a_check_but_cleaning_up_does() -> None:
    clock = LateClock()
    steps = Steps(clock)
    clock.late_s = CHECK_S + 1

    late = await steps.run("late", "s3://b", works)
    await steps.clean_up("s3://b", works)
    await steps.clean_up("s3://b", refuses)

    assert late.outcome == "skipped"
    assert [(each.name, each.outcome) for each in steps.done] == [("late", "skipped"), ("clean-up", "failed")]


async def test_a_mistake_of_our_own_is_not_taken_for_the_storages() -> None:
    async def mistake() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Steps(SystemClock()).run("mistake", "s3://b", mistake)
