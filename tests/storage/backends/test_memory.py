"""The kit on the executable specification."""

import pytest

from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import FileIOKit, Place
from cynosure.testing.harness.clock import ManualClock


class TestMemoryFileIO(FileIOKit):
    @pytest.fixture
    def place(self, manual_clock: ManualClock) -> Place:
        base = Location.parse("s3://bucket/parent/allowed")
        files = MemoryFileIO([base], manual_clock)
        return Place(base, lambda: files)
