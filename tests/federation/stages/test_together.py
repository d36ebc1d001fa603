"""One question for all who wait, asked after they came (I119)."""

import asyncio

import pytest

from cynosure.federation.stages.together import Together

pytestmark = pytest.mark.anyio


class Question:
    def __init__(self) -> None:
        self.begun = 0
        self.go_on = asyncio.Event()

    async def __call__(self) -> None:
        self.begun += 1
        await self.go_on.wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_comes_while_it_is_asked_waits_for_the_next_one() -> None:
    together, question = Together(), Question()
    tasks = [asyncio.create_task(together.run("k", question))]
    await settle()
    tasks += [asyncio.create_task(together.run("k", question)) for _ in range(3)]
    await settle()
    assert question.begun == 1
    question.go_on.set()

    await asyncio.gather(*tasks)

    assert question.begun == 2


async def test_other_keys_do_not_wait() -> None:
    together, question = Together(), Question()
    tasks = [asyncio.create_task(together.run(key, question)) for key in "ab"]
    await settle()
    assert question.begun == 2
    question.go_on.set()
    await asyncio.gather(*tasks)


async def test_an_error_reaches_all_who_waited_for_that_question_and_nobody_else() -> None:
    together, gate, outcomes = Together(), asyncio.Event(), [ValueError("first"), None]

    async def work() -> None:
        outcome = outcomes.pop(0)
        await gate.wait()
        if outcome is not None:
            raise outcome

    first = asyncio.create_task(together.run("k", work))
    await settle()
    second = asyncio.create_task(together.run("k", work))
    await settle()
    gate.set()

    with pytest.raises(ValueError, match="first"):
        await first
    await second


async def test_who_gives_up_does_not_end_it_for_others() -> None:
    together, question = Together(), Question()
    first = asyncio.create_task(together.run("k", question))
    await settle()
    waiting = [asyncio.create_task(together.run("k", question)) for _ in range(2)]
    await settle()
    first.cancel()
    waiting[0].cancel()
    await settle()
    question.go_on.set()

    await waiting[1]

    assert question.begun == 2
