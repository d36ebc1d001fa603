"""Handles and refusals, for tests of PostgreSQL's faults."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from cynosure.common.errors import CynosureError
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.spi import Backend


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Backend]:
    backend = open_backend(url)
    try:
        yield backend
    finally:
        await backend.close()


async def raised(call: Awaitable[object]) -> CynosureError:
    with pytest.raises(CynosureError) as refused:
        await call
    return refused.value
