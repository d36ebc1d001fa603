import uuid

import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle


class TestMemoryBackend(BackendKit):
    @pytest.fixture
    def open_handle(self) -> OpenHandle:
        url = f"memory:{uuid.uuid4().hex}"
        return lambda: open_backend(url)
