"""The store of the tests promises what real ones do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cynosure.delegation.store.port import TaskStore
from cynosure.testing.memory_task_store import MemoryTaskStore
from cynosure.testing.task_store_kit import OpenStore, TaskStoreKit


class TestMemoryTaskStore(TaskStoreKit):
    is_shared = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        @asynccontextmanager
        async def open_store() -> AsyncIterator[TaskStore]:
            yield MemoryTaskStore()

        return open_store
