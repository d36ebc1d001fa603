"""Handles on the store under test."""

from collections.abc import AsyncIterator, Callable

import pytest

from cynosure.persistence.spi import Backend

OpenHandle = Callable[[], Backend]
"""Makes another handle on the same store, without connecting."""


class KitFixtures:
    """What all chapters of the kit ask for."""

    @pytest.fixture
    def open_handle(self) -> OpenHandle:
        """The one thing that a binding supplies."""
        pytest.fail("A binding of the backend kit overrides the fixture open_handle")

    @pytest.fixture
    async def backend(self, open_handle: OpenHandle) -> AsyncIterator[Backend]:
        """A handle on a fresh store that is set up."""
        handle = open_handle()
        await handle.setup()
        yield handle
        await handle.close()

    @pytest.fixture
    async def other(self, open_handle: OpenHandle, backend: Backend) -> AsyncIterator[Backend]:
        """Another handle on the same store, as another process has one; the same where only one can be."""
        if not backend.limits.is_shared:
            yield backend
            return
        handle = open_handle()
        yield handle
        await handle.close()
