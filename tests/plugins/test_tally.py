"""A backend of another package: found by its entry point, judged by the shipped kit."""

from pathlib import Path

import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle
from cynosure.testing.backend_kit.samples import fixed, obj_key


class TestTallyBackend(BackendKit):
    @pytest.fixture
    def open_handle(self, tally_installed: None, tmp_path: Path) -> OpenHandle:
        return lambda: open_backend(f"tally:memory:{tmp_path}")


@pytest.mark.anyio
@pytest.mark.usefixtures("tally_installed")
async def test_a_backend_of_an_installed_package_is_chosen_by_its_scheme() -> None:
    backend = open_backend("tally:memory:?row_bytes=5000")
    await backend.setup()

    await backend.write([fixed(1)])
    await backend.fetch([obj_key(1)])

    assert backend.calls == {"setup": 1, "write": 1, "fetch": 1}  # type: ignore[attr-defined]
    assert backend.limits.row_bytes == 5000
