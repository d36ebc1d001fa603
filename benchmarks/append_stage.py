"""The servers and buckets that appends are measured on: ours and Iceberg's own, both with files on MinIO.

A maintainer must not break: every candidate has a bucket of its own, because MinIO counts requests by bucket;
and both servers keep their tables in memory, so that only files are stored.
"""

import asyncio
import base64
import hashlib
import hmac
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import boto3  # type: ignore[import-untyped]
import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.append_clients import NAMESPACE
from benchmarks.catalog_server import free_port
from benchmarks.http_client import Catalog
from benchmarks.results_file import ROOT
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server, find_s3_servers

_START_S: Final = 60.0
METRICS_AGE_S: Final = 11.0
"""MinIO counts again when its last answer is ten seconds old."""
_COUNTED: Final = re.compile(r'minio_bucket_requests_total\{api="[a-z0-9]+",bucket="([^"]+)"[^}]*\} (\S+)')


class Stage(Struct, frozen=True):
    """Where one candidate appends."""

    catalog: Catalog
    pid: int
    """Of the server; its children count too."""
    server: S3Server
    """The object store, with the candidate's own bucket."""


def find_minio() -> S3Server:
    """The MinIO of `scripts/services`."""
    found = find_s3_servers().get("minio")
    if found is None:
        sys.exit("bench: there is no MinIO; run scripts/services start and export its env")
    return found


@contextmanager
def make_bucket(server: S3Server, folder: str) -> Iterator[S3Server]:
    """The same server with an empty bucket for one folder, which goes with all that is in it."""
    client: Any = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name=server.region,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
    )
    made = replace(server, bucket=f"bench-{uuid.uuid4().hex[:12]}")
    client.create_bucket(Bucket=made.bucket)
    try:
        yield made
    finally:
        made.delete_below(f"s3://{made.bucket}/{folder}")
        client.delete_bucket(Bucket=made.bucket)
        client.close()


@asynccontextmanager
async def start_our_server() -> AsyncIterator[CatalogServer]:
    """Our server as users run it, with its store in memory."""
    with TemporaryDirectory(prefix="cynosure-bench-") as data, Processes(Path(data)) as processes:
        yield await start_catalog_server(processes, Path(data), "--store", "memory:")


async def open_ours(server: CatalogServer, name: str, files: S3Server) -> Stage:
    """A catalog of ours in a bucket."""
    made = await server.create_catalog_on(files, name, location=f"s3://{files.bucket}/{name}")
    login = f"{server.credential.text}@"
    address = f"{made.root.replace('://', f'://{login}')}?warehouse={name}"
    return await _open(Stage(await Catalog.find(address), server.process.pid, files))


@asynccontextmanager
async def open_fixture(files: S3Server) -> AsyncIterator[Stage]:
    """Iceberg's own server in a bucket."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "scripts/peers/fixture"), "--quiet"),
        *("--port", str(port), "--bucket", files.bucket),
        env=dict(os.environ),
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await _wait_for(port, process)
        yield await _open(Stage(await Catalog.find(f"http://127.0.0.1:{port}"), process.pid, files))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _open(stage: Stage) -> Stage:
    connection = stage.catalog.connect()
    wanted = {"namespace": [NAMESPACE], "properties": {}}
    answer = await connection.request("POST", f"{stage.catalog.root}/namespaces", wanted)
    connection.close()
    if answer.status != 200:
        sys.exit(f"bench: no namespace: {answer.status} {answer.body[:300]!r}")
    return stage


async def _wait_for(port: int, process: asyncio.subprocess.Process) -> None:
    give_up_s = time.monotonic() + _START_S
    while process.returncode is None and time.monotonic() < give_up_s:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        await asyncio.sleep(0.1)
    sys.exit("bench: scripts/peers/fixture did not start")


async def count_requests(server: S3Server) -> Mapping[str, int]:
    """The requests that MinIO has had so far, by bucket."""
    await asyncio.sleep(METRICS_AGE_S)
    headers = {"Authorization": f"Bearer {_metrics_token(server)}"}
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.get(f"{server.endpoint}/minio/v2/metrics/bucket", headers=headers)
    answer.raise_for_status()
    counts: dict[str, int] = {}
    for bucket, value in _COUNTED.findall(answer.text):
        counts[bucket] = counts.get(bucket, 0) + int(float(value))
    return counts


def _metrics_token(server: S3Server) -> str:
    """What MinIO's metrics are asked with: a token that its owner signs."""
    claims = {"sub": server.access_key_id, "iss": "prometheus", "exp": int(time.time()) + 600}
    parts = [_base64(msgspec.json.encode(each)) for each in ({"alg": "HS512", "typ": "JWT"}, claims)]
    signed = ".".join(parts).encode()
    signature = hmac.new(server.secret_access_key.encode(), signed, hashlib.sha512).digest()
    return f"{signed.decode()}.{_base64(signature)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
