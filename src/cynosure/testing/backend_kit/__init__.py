"""What every backend must do: the promises of `cynosure.persistence.spi`, as tests.

A binding is a subclass with one fixture:

    class TestMyBackend(BackendKit):
        @pytest.fixture
        def open_handle(self, tmp_path: Path) -> OpenHandle:
            return lambda: open_backend(f"mine:{tmp_path / 'store'}")

`open_handle` is called several times in a test; every call is another handle on the same store, which is
fresh for each test. What a backend does not offer it declares in its `Limits` (or by `hold_ref` being
`None`); tests of that are then skipped by name.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio: give it a fixture `anyio_backend` that
returns "asyncio". A maintainer must not break: no test names a database.
"""

from cynosure.testing.backend_kit.fixtures import OpenHandle
from cynosure.testing.backend_kit.kit import BackendKit

__all__ = ["BackendKit", "OpenHandle"]
