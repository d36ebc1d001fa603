import pytest

from cynosure.federation.guard.retries import RetryBudget
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


def take_all(budget: RetryBudget) -> int:
    taken = 0
    while budget.take():
        taken += 1
    return taken


async def test_at_most_a_tenth_of_all_requests_are_retries() -> None:
    budget = RetryBudget(ManualClock())
    for _ in range(200):
        budget.note_request()

    assert take_all(budget) == 20


async def test_a_quiet_remote_has_a_few() -> None:
    budget = RetryBudget(ManualClock())
    budget.note_request()

    assert take_all(budget) == 3


async def test_what_was_earned_long_ago_is_forgotten() -> None:
    clock = ManualClock()
    budget = RetryBudget(clock)
    for _ in range(200):
        budget.note_request()
    await clock.advance(70)

    assert take_all(budget) == 3
    await clock.advance(70)
    assert take_all(budget) == 3
