"""What an Idempotency-Key promises to clients, as tests: on any database, with any number of servers.

A binding is a subclass with one fixture, which gives handles of one store that is empty at first:

    class TestMine(IdempotencyKit):
        @pytest.fixture(scope="class")
        @classmethod
        def open_store(cls, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
            folder = tmp_path_factory.mktemp("store")
            return lambda: open_backend(f"mine:{folder}/store")

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio. A maintainer must not break: no test
names a database, and requests go through everything that a server puts before an operation.
"""

from cynosure.testing.idempotency_kit.kit import IdempotencyKit

__all__ = ["IdempotencyKit"]
