import pytest

from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.remote_kit import RemoteKit, Stage


class TestMemoryRemote(RemoteKit):
    @pytest.fixture
    def stage(self) -> Stage:
        return Stage(MemoryRemote(), "file:///place")
