from collections.abc import AsyncIterator

import pytest

from cynosure.testing.harness.clock import ManualClock
from tests.auth.tokens.world import TokenWorld, open_world


@pytest.fixture
async def world(anyio_backend: str, manual_clock: ManualClock) -> AsyncIterator[TokenWorld]:
    """A server on a fresh store; nobody has a token yet."""
    async with open_world(manual_clock) as opened:
        yield opened
