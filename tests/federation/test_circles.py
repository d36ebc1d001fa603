"""Requests that come back to where they were. With real servers: tests/federation/real/test_chain.py."""

import asyncio

import pytest

from cynosure.federation.circles import came_through, mark_of, pass_on, passed, require_no_circle
from cynosure.federation.errors import InCircle
from tests.federation.seen_world import Far

pytestmark = pytest.mark.anyio

OTHERS = ["a" * 24, "b" * 24]


async def test_who_came_through_a_catalog_is_refused_there_and_nowhere_else(far: Far) -> None:
    require_no_circle(far.catalog)
    with came_through(",".join(OTHERS)):
        require_no_circle(far.catalog)
        header = pass_on(mark_of(far.catalog))
        assert header.split(",") == [*OTHERS, mark_of(far.catalog)]
        with came_through(header), pytest.raises(InCircle):
            require_no_circle(far.catalog)
    assert passed() == ()


async def test_a_way_that_is_too_long_is_a_circle(far: Far) -> None:
    for count, is_refused in ((15, False), (16, True), (64, True)):
        with came_through(",".join(f"{number:024x}" for number in range(count))):
            if is_refused:
                with pytest.raises(InCircle):
                    require_no_circle(far.catalog)
            else:
                require_no_circle(far.catalog)


@pytest.mark.parametrize("header", ["", "x", "A" * 24, "a" * 24 + ";", ",".join(["a" * 24] * 65)])
async def test_what_cannot_be_a_way_counts_as_none(header: str) -> None:
    with came_through(header):
        assert passed() == ()


async def test_nobody_is_answered_together_with_who_came_another_way(far: Far) -> None:
    far.put()
    far.remote.gate = asyncio.Event()

    async def see(*marks: str) -> None:
        with came_through(",".join(marks)):
            await far.see()

    asked = [asyncio.create_task(see(*marks)) for marks in ([], [], OTHERS)]
    async with asyncio.timeout(60):
        while len(far.remote.asked) < 2:  # noqa: ASYNC110 - the remote says it to nobody
            await asyncio.sleep(0)
    assert far.remote.asked == ["load-table", "load-table"]
    far.remote.gate.set()
    await asyncio.gather(*asked)
