"""A corner of the S3 server for each test, emptied afterwards."""

from collections.abc import AsyncIterator

import pytest

from .s3_corner import S3Corner


@pytest.fixture
async def s3(s3_url: str, anyio_backend: str) -> AsyncIterator[S3Corner]:
    corner = S3Corner.at(s3_url)
    yield corner
    fileio = corner.open()
    await fileio.delete_many([found.location async for found in fileio.list(corner.base)])
