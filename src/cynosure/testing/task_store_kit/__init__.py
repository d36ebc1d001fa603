"""What every store of delegated tasks must do: the promises of `cynosure.delegation.store.port`, as tests.

A binding is a subclass with one fixture:

    class TestMine(TaskStoreKit):
        @pytest.fixture
        def open_store(self, tmp_path: Path) -> OpenStore:
            return lambda: open_task_store(f"mine:{tmp_path / 'store'}", "default")

`open_store` is called several times in a test; every call is another handle on the same store, which is empty
at first. Where only one handle can be, the binding says `is_shared = False`.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio. A maintainer must not break: no test
names a database.
"""

from cynosure.testing.task_store_kit.fixtures import OpenStore
from cynosure.testing.task_store_kit.kit import TaskStoreKit

__all__ = ["OpenStore", "TaskStoreKit"]
