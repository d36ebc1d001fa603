"""A corner of each S3 server with a token service, as a storage configuration."""

from collections.abc import AsyncIterator

import pytest

from cynosure.testing.s3_servers import S3Server

from .sts_corner import StsCorner


@pytest.fixture
async def sts(sts_server: S3Server, anyio_backend: str) -> AsyncIterator[StsCorner]:
    corner = StsCorner(sts_server)
    yield corner
    await corner.clean()
