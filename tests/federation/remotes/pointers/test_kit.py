"""The kits of remotes on Hive, Glue and PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cynosure.testing.pointer_kit import PointerKit, PointerStage
from cynosure.testing.remote_kit import RemoteKit, Stage
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import (
    Corner,
    GlueCorner,
    HiveCorner,
    Proxies,
    SqlCorner,
    staged,
)
from tests.federation.remotes.pointers.lakes import open_remote_at


class TestHivePointers(PointerKit):
    @pytest.fixture
    async def stage(self, hive: HiveCorner, fault_proxy: Proxies) -> AsyncIterator[PointerStage]:
        async with staged(hive, fault_proxy) as stage:
            yield stage


class TestGluePointers(PointerKit):
    # moto passes over the version that an update names; test_glue.py shows that each names one.
    is_conditional = False

    @pytest.fixture
    async def stage(self, glue: GlueCorner, fault_proxy: Proxies) -> AsyncIterator[PointerStage]:
        async with staged(glue, fault_proxy) as stage:
            yield stage


class TestSqlPointers(PointerKit):
    @pytest.fixture
    async def stage(self, sql: SqlCorner, fault_proxy: Proxies) -> AsyncIterator[PointerStage]:
        async with staged(sql, fault_proxy) as stage:
            yield stage


@asynccontextmanager
async def stage_on(corner: Corner, server: S3Server, folder: Path) -> AsyncIterator[Stage]:
    place = server.fresh_location("pointers")
    async with open_remote_at(folder, corner, server, place) as remote:
        yield Stage(remote, place)


class TestHiveRemote(RemoteKit):
    @pytest.fixture
    async def stage(self, hive: HiveCorner, minio: S3Server, tmp_path: Path) -> AsyncIterator[Stage]:
        async with stage_on(hive, minio, tmp_path) as stage:
            yield stage


class TestGlueRemote(RemoteKit):
    @pytest.fixture
    async def stage(self, glue: GlueCorner, minio: S3Server, tmp_path: Path) -> AsyncIterator[Stage]:
        async with stage_on(glue, minio, tmp_path) as stage:
            yield stage


class TestSqlRemote(RemoteKit):
    @pytest.fixture
    async def stage(self, sql: SqlCorner, minio: S3Server, tmp_path: Path) -> AsyncIterator[Stage]:
        async with stage_on(sql, minio, tmp_path) as stage:
            yield stage
