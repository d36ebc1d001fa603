import asyncio
from collections.abc import AsyncIterator

import pytest

from cynosure.testing.small_store import SmallStore


@pytest.fixture
async def bench() -> AsyncIterator[SmallStore]:
    bench = SmallStore()
    await bench.setup()
    yield bench
    leaked = [task for task in asyncio.all_tasks() if task.get_coro().__qualname__.startswith("Committer")]
    assert not leaked, "a committer's task outlived its work"
