from pathlib import Path

import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle


class TestSqliteBackend(BackendKit):
    @pytest.fixture
    def open_handle(self, tmp_path: Path) -> OpenHandle:
        return lambda: open_backend(f"sqlite:{tmp_path / 'store.db'}")
