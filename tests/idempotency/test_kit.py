"""The kit of Idempotency-Keys on each kind of store."""

from typing import cast

import pytest

from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.spi import Backend
from cynosure.testing.idempotency_kit import IdempotencyKit
from cynosure.testing.small_servers import KeptOpen, OpenStore


class TestMemory(IdempotencyKit):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls) -> OpenStore:
        memory = cast(Backend, KeptOpen(MemoryBackend()))
        return lambda: memory


class TestSqlite(IdempotencyKit):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
        folder = tmp_path_factory.mktemp("store")
        return lambda: open_backend(f"sqlite:{folder}/store.db")


class TestPostgres(IdempotencyKit):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, shared_schema_url: str) -> OpenStore:
        return lambda: open_backend(shared_schema_url)
