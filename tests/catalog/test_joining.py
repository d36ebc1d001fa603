"""Turns at a table: nobody waits for company, and whoever comes meanwhile goes with the others."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from cynosure.catalog.background import Background
from cynosure.catalog.joining import MOST, Joining

pytestmark = pytest.mark.anyio


class Table:
    """Counts who went how."""

    def __init__(self) -> None:
        self.joining: Joining[str] = Joining(Background())
        self.alone: list[str] = []
        self.groups: list[list[str]] = []
        self.gate = asyncio.Event()
        self.left_out: set[str] = set()
        self.error: Exception | None = None

    async def ask(self, name: str) -> str:
        return await self.joining.run("t", name, self._alone(name), self._together)

    def _alone(self, name: str) -> Callable[[], Awaitable[str]]:
        async def alone() -> str:
            self.alone.append(name)
            await self.gate.wait()
            return f"{name} alone"

        return alone

    async def _together(self, names: Sequence[str]) -> Mapping[str, str]:
        self.groups.append(list(names))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return {name: f"{name} together" for name in names if name not in self.left_out}

    async def ask_all(self, *names: str) -> list[asyncio.Task[str]]:
        tasks = [asyncio.create_task(self.ask(name)) for name in names]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return tasks


async def test_who_comes_first_goes_alone_and_those_who_came_meanwhile_together() -> None:
    table = Table()
    tasks = await table.ask_all("a", "b", "c", "d")
    assert (table.alone, table.groups) == (["a"], [])

    table.gate.set()

    assert await asyncio.gather(*tasks) == ["a alone", "b together", "c together", "d together"]
    assert table.groups == [["b", "c", "d"]]
    assert await table.ask("e") == "e alone"


async def test_a_single_one_who_waits_goes_alone() -> None:
    table = Table()
    tasks = await table.ask_all("a", "b")
    table.gate.set()

    assert await asyncio.gather(*tasks) == ["a alone", "b alone"]
    assert table.groups == []


async def test_who_is_left_out_goes_alone() -> None:
    table = Table()
    table.left_out = {"c"}
    tasks = await table.ask_all("a", "b", "c")
    table.gate.set()

    assert await asyncio.gather(*tasks) == ["a alone", "b together", "c alone"]


async def test_an_error_is_for_all_of_the_group_and_the_turn_goes_on() -> None:
    table = Table()
    table.error = OSError("no answer")
    tasks = await table.ask_all("a", "b", "c")
    table.gate.set()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(each) for each in outcomes] == [str, OSError, OSError]
    table.error = None
    assert await table.ask("d") == "d alone"


async def test_who_gives_up_leaves_the_turn_to_the_others() -> None:
    table = Table()
    first, second, third = await table.ask_all("a", "b", "c")
    second.cancel()
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    table.gate.set()

    assert await third == "c alone"
    assert await table.ask("d") == "d alone"


async def test_the_turn_is_not_lost_with_one_who_gives_up_as_it_comes() -> None:
    table = Table()
    table.gate.set()
    first, second = await table.ask_all("a", "b")
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)

    assert await asyncio.wait_for(table.ask("c"), 5) == "c alone"


async def test_a_crowd_is_divided() -> None:
    table = Table()
    tasks = await table.ask_all("a", *(f"n{number}" for number in range(MOST + 5)))
    table.gate.set()

    await asyncio.gather(*tasks)
    assert [len(group) for group in table.groups] == [MOST, 5]


async def test_a_group_goes_by_what_its_last_member_knows() -> None:
    """A catalog is opened anew when it is changed; without end, a group would follow the first one's."""
    joining: Joining[str] = Joining(Background())
    gate = asyncio.Event()

    async def alone() -> str:
        await gate.wait()
        return "alone"

    def knowing(what: str) -> Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]:
        async def together(names: Sequence[str]) -> Mapping[str, str]:
            return dict.fromkeys(names, what)

        return together

    tasks = []
    for name in ("a", "b", "c"):
        tasks.append(asyncio.create_task(joining.run("t", name, alone, knowing(f"as {name}"))))
        await asyncio.sleep(0)
    gate.set()

    assert await asyncio.gather(*tasks) == ["alone", "as c", "as c"]
