"""A federated catalog in one process, with a remote in memory that does what its test wants."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.testing.harness.clock import ManualClock
from tests.federation.seen_world import Far, open_far


@pytest.fixture
async def far(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[Far]:
    """A federated catalog `far`."""
    async with open_far(tmp_path / "files", clock=manual_clock) as opened:
        opened.remote.home = opened.catalog.base.text
        yield opened
