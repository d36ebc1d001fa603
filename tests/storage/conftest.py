"""A corner of Azurite for each test, emptied afterwards; traps for those who look for keys elsewhere."""

from collections.abc import AsyncIterator

import pytest

from .azure_corner import AzureCorner, grant
from .recorded_service import RecordedService
from .traps import metrics, poisoned, trap

__all__ = ["azure", "metrics", "poisoned", "trap"]


@pytest.fixture
async def azure(azure_url: str, anyio_backend: str) -> AsyncIterator[AzureCorner]:
    async with RecordedService(grant) as login:
        corner = AzureCorner(azure_url, login)
        await corner.set_up()
        yield corner
        await corner.clean()
