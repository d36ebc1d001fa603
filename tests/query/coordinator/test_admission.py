"""Who may begin."""

import asyncio

import pytest

from cynosure.common.clock import SystemClock
from cynosure.query.coordinator.admission import Admission, Watermark, find_watermark
from cynosure.query.errors import QueueFull
from cynosure.query.settings import QuerySettings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("ratio", "level"),
    [(0, "green"), (0.59, "green"), (0.6, "yellow"), (0.75, "orange"), (0.9, "red"), (1.2, "red")],
)
def test_watermarks(ratio: float, level: str):
    assert find_watermark(ratio) is Watermark(level)


class Entered:
    def __init__(self, admission: Admission) -> None:
        self.came = asyncio.Event()
        self.is_in = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.task = asyncio.create_task(self._stay(admission))

    async def _stay(self, admission: Admission) -> None:
        # It is in, or waits, before anybody else is heard of this.
        self.came.set()
        async with admission.admitted():
            self.is_in.set()
            await self.may_leave.wait()


async def test_so_many_at_once_and_so_many_wait_in_their_order():
    admission = Admission(QuerySettings(concurrent=2, queued=2), SystemClock(), lambda: 0.0)
    people = []
    for _ in range(4):
        admission.check()
        people.append(Entered(admission))
        await people[-1].came.wait()
    assert [each.is_in.is_set() for each in people] == [True, True, False, False]
    with pytest.raises(QueueFull, match="waiting"):
        admission.check()
    # One that waits gives up: nobody gets its place, and the queue has room again.
    people[2].task.cancel()
    await asyncio.gather(people[2].task, return_exceptions=True)
    admission.check()
    people[0].may_leave.set()
    await asyncio.wait_for(people[3].is_in.wait(), 60)
    people[1].may_leave.set()
    people[3].may_leave.set()
    await asyncio.gather(people[1].task, people[3].task)
    last = Entered(admission)
    await asyncio.wait_for(last.is_in.wait(), 60)
    last.may_leave.set()
    await last.task


async def test_nobody_new_begins_while_memory_is_nearly_used_up():
    ratio = 0.95
    admission = Admission(QuerySettings(concurrent=2), SystemClock(), lambda: ratio)
    first = Entered(admission)
    # Alone it may: nobody else would give memory back.
    await asyncio.wait_for(first.is_in.wait(), 60)
    second = Entered(admission)
    await asyncio.sleep(0.15)
    assert not second.is_in.is_set()
    ratio = 0.5
    await asyncio.wait_for(second.is_in.wait(), 60)
    for each in (first, second):
        each.may_leave.set()
        await each.task
