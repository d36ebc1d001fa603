import stat
from pathlib import Path

import pytest

from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle


class TestSqliteBackend(BackendKit):
    @pytest.fixture
    def open_handle(self, tmp_path: Path) -> OpenHandle:
        return lambda: open_backend(f"sqlite:{tmp_path / 'store.db'}")


@pytest.mark.anyio
async def test_only_its_owner_can_read_a_new_store(tmp_path: Path) -> None:
    """Also where somebody made the directory before, open to all."""
    tmp_path.chmod(0o755)
    async with open_persistence(f"sqlite:{tmp_path / 'store.db'}", initialise=True):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


@pytest.mark.anyio
async def test_the_mode_of_a_store_that_exists_is_its_owners_choice(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    path.chmod(0o640)
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()
    await backend.close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
