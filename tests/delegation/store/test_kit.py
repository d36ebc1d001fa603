"""The kit on all stores of tasks."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cynosure.delegation.store.objects import ObjectTaskStore
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import TaskStore
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.task_store_kit import OpenStore, TaskStoreKit
from cynosure.testing.task_store_kit.fencing import FencingTests
from cynosure.testing.task_store_kit.leasing import LeasingTests


class TestMemory(TaskStoreKit):
    is_shared = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        return lambda: open_task_store("memory:", "default")


class TestSqlite(TaskStoreKit):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: open_task_store(f"sqlite:{tmp_path / 'tasks.db'}", "acme")


class TestPostgres(TaskStoreKit):
    @pytest.fixture
    def open_store(self, shared_schema_url: str) -> OpenStore:
        # Each test has a realm of its own in the same tables, so realms are kept apart as well.
        realm = f"realm-{uuid.uuid4().hex}"
        return lambda: open_task_store(shared_schema_url, realm)


@pytest.mark.anyio
class TestObjectsInPostgres(LeasingTests, FencingTests):
    """As a catalog embeds it: what is contended, between two processes on one database."""

    @pytest.fixture
    def open_store(self, postgres_schema_url: str) -> OpenStore:
        @asynccontextmanager
        async def open_store() -> AsyncIterator[TaskStore]:
            async with open_persistence(postgres_schema_url, initialise=True) as persistence:
                yield ObjectTaskStore(persistence, DEFAULT_REALM)

        return open_store
