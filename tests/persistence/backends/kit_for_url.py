"""The kit on any store URL, for plug-ins: `./dev kit 'mine:/somewhere/{fresh}'`. Not part of the suite."""

import os
import uuid

import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle


class TestBackendOfUrl(BackendKit):
    @pytest.fixture
    def open_handle(self) -> OpenHandle:
        url = os.environ["CYNOSURE_KIT_URL"].replace("{fresh}", uuid.uuid4().hex)
        return lambda: open_backend(url)
