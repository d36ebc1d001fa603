import pytest

from cynosure.auth.tokens import failures as module
from cynosure.auth.tokens.failures import BURST, REFILL_S, Failures
from cynosure.testing.harness.clock import ManualClock

WHO = ("realm", "client", "peer")


def fail(failures: Failures, count: int, who=WHO) -> None:
    for _ in range(count):
        failures.count(who)


def test_some_failures_slow_nobody_down():
    failures = Failures(ManualClock())

    fail(failures, BURST - 1)

    assert failures.wait_s(WHO) == 0


@pytest.mark.anyio
async def test_after_those_one_more_is_let_in_from_time_to_time():
    clock = ManualClock()
    failures = Failures(clock)
    fail(failures, BURST)
    assert failures.wait_s(WHO) == REFILL_S

    await clock.advance(REFILL_S)
    assert failures.wait_s(WHO) == 0
    failures.count(WHO)
    assert failures.wait_s(WHO) == REFILL_S

    await clock.advance(BURST * REFILL_S)
    fail(failures, BURST - 1)
    assert failures.wait_s(WHO) == 0


def test_others_are_not_slowed_down():
    failures = Failures(ManualClock())

    fail(failures, BURST)

    assert failures.wait_s(("realm", "client", "elsewhere")) == 0


def test_memory_is_bounded_and_the_oldest_goes_first():
    failures = Failures(ManualClock())
    fail(failures, BURST)
    for number in range(module._MOST_KEPT - 1):
        failures.count(("realm", str(number), "peer"))
    assert failures.wait_s(WHO) > 0

    failures.count(("realm", "one more", "peer"))

    assert failures.wait_s(WHO) == 0
    assert len(failures._full_s) == module._MOST_KEPT
