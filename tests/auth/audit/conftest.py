"""A realm with commits of its own, for tests of its events; in memory and in SQLite."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.settings import PersistenceSettings
from cynosure.testing.harness.clock import ManualClock

from .realm import SETTINGS, Realm

Open = Callable[..., AbstractAsyncContextManager[Persistence]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'store.db'}"


@pytest.fixture
def open_store(url: str, clock: ManualClock) -> Open:
    """Another process on the same store (SQLite), or the store of this process (memory)."""

    def open_it(settings: PersistenceSettings = SETTINGS) -> AbstractAsyncContextManager[Persistence]:
        return open_persistence(url, settings, initialise=True, clock=clock)

    return open_it


@pytest.fixture
async def persistence(open_store: Open) -> AsyncIterator[Persistence]:
    async with open_store() as opened:
        yield opened


@pytest.fixture
def realm(persistence: Persistence) -> Realm:
    return Realm(persistence)
