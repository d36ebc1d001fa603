"""A service that runs: what it was given to work with is written nowhere; its environment opens nothing."""

import asyncio
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.client.appends import append
from cynosure.client.profiles import Profile
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.delegation_server import start_pair
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import VARIABLES, parse_s3_server
from tests.engines.poison import POISON

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

TOKEN = re.compile(rb"eyJ[\w-]{10,}\.[\w-]{10,}")
"""Tokens of the catalog and of MinIO's sessions are JSON web tokens."""
NOWHERE = {"AWS_PROFILE": "nobody", "AWS_CA_BUNDLE": "/nowhere"}


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        yield processes


async def test_a_purge_leaves_no_secret_behind_and_takes_none_from_the_environment(
    processes: Processes, tmp_path: Path
) -> None:
    minio = parse_s3_server("minio", os.environ[VARIABLES["minio"]])
    pair = await start_pair(processes, tmp_path)
    lake = await pair.catalog.create_catalog_on(minio)
    await pair.init()
    service = await pair.start_service(env={**POISON, **NOWHERE})
    async with lake.client(timeout=90) as http:
        await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
        made = await http.post(f"{lake.url}/namespaces/ns/tables", json={"name": "t", "schema": SCHEMA})
        assert made.status_code == 200, made.text
        location = made.json()["metadata"]["location"]
        root = pair.catalog.credential
        profile = Profile(url=pair.catalog.url, client_id=root.client_id, client_secret=root.secret)
        column = SCHEMA["fields"][0]["name"]  # type: ignore[index]
        rows = pa.table({column: pa.array([1], pa.int64())})
        await asyncio.to_thread(append, "ns.t", rows, catalog=lake.name, server=profile)
        assert len(minio.list_below(location)) >= 4
        path = f"{lake.url}/namespaces/ns/tables/t"
        dropped = await http.delete(path, params={"purgeRequested": "true"})
    assert dropped.status_code == 204, dropped.text
    assert minio.list_below(location) == set()
    assert await service.stop() == 0

    own = json.loads(pair.credentials.read_bytes())
    secrets = [str(value).encode() for name, value in own.items() if "secret" in name.lower()]
    assert secrets
    told = {}
    for file in tmp_path.rglob("*"):
        if not file.is_file() or file == pair.credentials:
            continue
        data = file.read_bytes()
        if TOKEN.search(data) or any(secret in data for secret in secrets):
            told[str(file.relative_to(tmp_path))] = TOKEN.findall(data)[:3]
    assert told == {}
    assert stat.S_IMODE(pair.credentials.stat().st_mode) == 0o600
    for directory in (tmp_path / "delegation", pair.certs):
        assert stat.S_IMODE(directory.stat().st_mode) & 0o077 == 0, directory
