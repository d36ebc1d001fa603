"""What tests of long work may ask for."""

from collections.abc import AsyncIterator

import pytest

from cynosure.testing.small_delegation import SmallDelegation


@pytest.fixture
async def small() -> AsyncIterator[SmallDelegation]:
    """Tasks in memory, and time in the hands of the test; workers are stopped at the end."""
    small = SmallDelegation()
    yield small
    await small.close()
