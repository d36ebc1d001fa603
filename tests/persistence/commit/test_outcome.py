"""A swap whose answer was lost, and what the database says afterwards."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cynosure.common.errors import CynosureError, Damaged, Misconfigured, OutcomeUnknown, Unavailable
from cynosure.persistence.spi import Reference
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import SmallStore

pytestmark = pytest.mark.anyio

Apply = Callable[[], Awaitable[bool]]


@pytest.mark.parametrize(
    "later",
    [
        Unavailable("down"),
        Misconfigured("the password was changed", fix="Set it."),
        Damaged("a page is broken"),
        OutcomeUnknown("lost again"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_is_said_later_an_unknown_outcome_is_never_called_a_refusal(
    later: CynosureError,
) -> None:
    """I1, I3."""
    clock = ManualClock()
    bench = SmallStore(clock)
    await bench.setup()

    async def applied_and_then_trouble(_expected: Reference, _updated: Reference, apply: Apply) -> bool:
        if bench.backend.swaps > 1:
            raise later
        await apply()
        raise OutcomeUnknown("lost")

    bench.backend.rule = applied_and_then_trouble
    commit = asyncio.create_task(bench.committer().commit(bench.items.add("t")))
    while not commit.done():
        await clock.advance(1)

    with pytest.raises(OutcomeUnknown):
        await commit
    assert list((await bench.counts()).values()) == [1]
