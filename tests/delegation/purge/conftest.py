"""Storages for jobs: in memory, on disk, and on real S3 servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.location import Location
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server
from tests.delegation.purge.world import World


@pytest.fixture
def memory() -> MemoryFileIO:
    return MemoryFileIO([Location.parse("s3://bkt")], SystemClock())


@pytest.fixture
def world(memory: MemoryFileIO) -> World:
    return World(memory, "s3://bkt/lake/t")


@pytest.fixture
def disk(tmp_path: Path) -> World:
    files = LocalFileIO([Location.parse(f"file://{tmp_path}")])
    return World(files, f"file://{tmp_path}/lake/t")


@pytest.fixture
def on_s3(sts_server: S3Server) -> Iterator[World]:
    """On each real server, with properties as a client has them."""
    base = sts_server.fresh_location("purge")
    properties = {
        "s3.access-key-id": sts_server.access_key_id,
        "s3.secret-access-key": sts_server.secret_access_key,
        "s3.endpoint": sts_server.endpoint,
        "s3.path-style-access": "true",
        "client.region": sts_server.region,
    }
    files = open_vended(properties, [Location.parse(base)], StorageSettings(), SystemClock())
    yield World(files, f"{base}/t", client=properties)
    sts_server.delete_below(base)
