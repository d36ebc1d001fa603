from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.testing.harness.clock import ManualClock
from tests.federation.seen_world import open_far
from tests.federation.writes.changes import Passing, passing
from tests.federation.writes.losing_remote import LosingRemote


@pytest.fixture
async def here(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[Passing]:
    """A federated catalog whose remote takes no keys."""
    async with open_far(tmp_path / "files", clock=manual_clock, remote=LosingRemote()) as far:
        yield passing(far)


@pytest.fixture
async def keyed(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[Passing]:
    """A federated catalog whose remote takes keys."""
    async with open_far(tmp_path / "files", clock=manual_clock, remote=LosingRemote(takes_keys=True)) as far:
        yield passing(far)


@pytest.fixture
async def forgetful(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[Passing]:
    """A federated catalog whose remote says that it takes keys, and does not honour them."""
    remote = LosingRemote(takes_keys=True, is_forgetful=True)
    async with open_far(tmp_path / "files", clock=manual_clock, remote=remote) as far:
        yield passing(far)
