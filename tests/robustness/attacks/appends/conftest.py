"""A catalog with a table `ns.t`, in one process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.catalog.world import Lake, open_lake


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened
