import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle


class TestPostgresBackend(BackendKit):
    @pytest.fixture
    def open_handle(self, postgres_schema_url: str) -> OpenHandle:
        return lambda: open_backend(postgres_schema_url)
