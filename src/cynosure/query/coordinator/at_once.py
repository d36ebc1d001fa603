"""Several things at once, of which the first failure ends all others."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def all_of(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order. The first error, as it is; nothing goes on running behind it."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
