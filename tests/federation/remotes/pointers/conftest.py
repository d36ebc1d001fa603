"""The three kinds of remotes that only keep pointers."""

import asyncio
from collections.abc import Iterator

import pytest

from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import (
    Corner,
    GlueCorner,
    HiveCorner,
    SqlCorner,
    drop_database,
    make_database,
)
from tests.storage.traps import poisoned, trap

__all__ = ["poisoned", "trap"]


@pytest.fixture(scope="session")
def hive(hive_url: str) -> HiveCorner:
    return HiveCorner(hive_url)


@pytest.fixture(scope="session")
def glue(glue_url: str) -> GlueCorner:
    return GlueCorner(glue_url)


@pytest.fixture(scope="module")
def sql(postgres_url: str, minio: S3Server) -> Iterator[SqlCorner]:
    url = asyncio.run(make_database(postgres_url))
    corner = SqlCorner(url, "far")
    corner.connect(minio, minio.fresh_location()).engine.dispose()
    yield corner
    asyncio.run(drop_database(postgres_url, url))


@pytest.fixture(params=["hive", "glue", "sql"])
def corner(request: pytest.FixtureRequest) -> Corner:
    """Each of them: a test runs on all three."""
    found: Corner = request.getfixturevalue(request.param)
    return found
