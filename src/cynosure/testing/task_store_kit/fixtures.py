"""Handles on the store under test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from cynosure.delegation.store.port import TaskStore

OpenStore = Callable[[], AbstractAsyncContextManager[TaskStore]]
"""Opens another handle on the same store."""


class KitFixtures:
    """What all chapters of the kit ask for."""

    is_shared = True
    """Whether several handles can be open at once."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """The one thing that a binding supplies."""
        pytest.fail("A binding of the task store kit overrides the fixture open_store")

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> AsyncIterator[TaskStore]:
        """A handle on an empty store."""
        async with open_store() as store:
            yield store

    @pytest.fixture
    async def other(self, open_store: OpenStore, store: TaskStore) -> AsyncIterator[TaskStore]:
        """Another handle on the same store, as another process has one; the same where only one can be."""
        if not self.is_shared:
            yield store
            return
        async with open_store() as other:
            yield other
