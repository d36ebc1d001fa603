"""How many may be written: bounded for each, and what is remembered is bounded too."""

import pytest

from cynosure.auth.audit import write_limit
from cynosure.auth.audit.write_limit import WriteLimit
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


async def test_each_key_has_a_limit_of_its_own_that_time_lifts() -> None:
    clock = ManualClock()
    limit: WriteLimit[str] = WriteLimit(clock, per_minute=6, at_once=2)

    assert [limit.admit("a") for _ in range(3)] == [True, True, False]
    assert limit.admit("b")
    await clock.advance(10)
    assert [limit.admit("a") for _ in range(2)] == [True, False]
    await clock.advance(1_000)
    assert [limit.admit("a") for _ in range(3)] == [True, True, False]

    assert limit.take_suppressed() == {"a": 3}
    assert limit.take_suppressed() == {}


async def test_what_is_remembered_is_bounded_and_nobody_escapes_by_it() -> None:
    clock = ManualClock()
    limit: WriteLimit[int] = WriteLimit(clock, per_minute=1, at_once=1)
    most = write_limit._MAX_KEYS

    admitted = [limit.admit(key) for key in range(2 * most)]

    assert sum(admitted) == most
    assert not limit.admit(0)
    assert sum(limit.take_suppressed().values()) == most
    await clock.advance(61)
    assert limit.admit(3 * most)
    assert limit.admit(0)
