"""A store with one catalog, in which tests say who has what."""

from collections.abc import AsyncIterator

import pytest

from cynosure.persistence.lifecycle import open_persistence
from cynosure.testing.access_world import AccessWorld


@pytest.fixture
async def world() -> AsyncIterator[AccessWorld]:
    async with open_persistence("memory:", initialise=True) as persistence:
        made = AccessWorld(persistence)
        await made.setup()
        yield made
