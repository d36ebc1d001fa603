"""Some work on many things, several at a time, the results in order.

A maintainer must not break: no more than `width` results are under way or waiting, however many things there
are; and whoever leaves early leaves no work behind.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def side_by_side(
    work: Callable[[T], Awaitable[R]], things: Iterable[T], *, width: int
) -> AsyncGenerator[R, None]:
    """The results of `work` in the order of `things`. Close it (`aclosing`) when it is left early."""
    under_way: deque[asyncio.Future[R]] = deque()
    rest = iter(things)
    try:
        for thing in rest:
            under_way.append(asyncio.ensure_future(work(thing)))
            if len(under_way) >= width:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for each in under_way:
            each.cancel()
        # Looked at, so that nobody is told of an error that nobody waits for.
        await asyncio.gather(*under_way, return_exceptions=True)
