"""Credentials that change in the middle of a scan, on stores that enforce what credentials are for."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import msgspec
import pyarrow as pa
import pytest

from cynosure.query.errors import EngineUnavailable
from cynosure.query.scan.governed import governed_batches, output_schema
from cynosure.query.scan.port import ScanWatch
from cynosure.query.scan_task import Credentials, ScanTask
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import read_fragments
from cynosure.storage.errors import StorageRefused
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.scan_kit import task_from_arrow
from cynosure.testing.small_broker import SmallBroker, make_order, number_batches

pytestmark = pytest.mark.anyio


def open_session(server: S3Server, key: str, *, left_s: float) -> Credentials:
    """Good for one object of the bucket; says that it ends soon, whatever the server thinks."""
    sts = boto3.client(
        "sts",
        endpoint_url=server.endpoint,
        region_name=server.region,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
    )
    statement = {
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{server.bucket}/{key}"],
    }
    given = sts.assume_role(
        RoleArn=server.role_arn or "arn:aws:iam::000000000000:role/any",
        RoleSessionName="scan",
        DurationSeconds=900,
        Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )["Credentials"]
    properties = {
        "s3.endpoint": server.endpoint,
        "s3.path-style-access": "true",
        "client.region": server.region,
        "s3.access-key-id": given["AccessKeyId"],
        "s3.secret-access-key": given["SecretAccessKey"],
        "s3.session-token": given["SessionToken"],
    }
    return Credentials(0, properties, round((time.time() + left_s) * 1_000))


def write_files(server: S3Server, directory: Path) -> tuple[ScanTask, list[str]]:
    """A task over two objects, and their keys."""
    written = task_from_arrow(
        directory, pa.table({"n": [1, 2, 3, 4]}), files=2, query_id="q", fragment_id="f0"
    )
    base = server.fresh_location()
    bucket = server.open_bucket()
    files, keys = [], []
    for number, file in enumerate(written.files):
        key = f"{base.removeprefix(f's3://{server.bucket}/')}/{number}.parquet"
        bucket.put(key, Path(file.path).read_bytes())
        files.append(msgspec.structs.replace(file, path=f"s3://{server.bucket}/{key}"))
        keys.append(key)
    return msgspec.structs.replace(written, files=tuple(files), places=(base,), file_roots=()), keys


class PatientScan:
    """Waits behind the first file until there are newer credentials."""

    def __init__(self) -> None:
        self.has_read_one = threading.Event()

    def __call__(self, task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
        batches = governed_batches(task, watch)
        first = next(batches)
        self.has_read_one.set()
        yield first
        until_s = time.monotonic() + 30
        while watch.credentials().number == 0 and time.monotonic() < until_s:
            time.sleep(0.01)
        yield from batches


async def test_the_next_file_is_read_with_what_was_pushed(sts_server: S3Server, tmp_path: Path) -> None:
    task, [first, second] = await asyncio.to_thread(write_files, sts_server, tmp_path)
    task = msgspec.structs.replace(task, credentials=open_session(sts_server, first, left_s=1))

    scan = PatientScan()

    def renew_late() -> Credentials:
        # The newer ones do not open the first file.
        assert scan.has_read_one.wait(20)
        return open_session(sts_server, second, left_s=600)

    async def renew() -> Credentials:
        return await asyncio.to_thread(renew_late)

    async with SmallBroker() as small:
        query = small.open("q", [task], renew=renew)
        order = make_order(query, ["f0"], output_schema(task))

        def run() -> list[int]:
            batches = read_fragments(order, number_batches(1), attempt=Attempt(), scan=scan)
            return [value for batch in batches for value in batch.column(0).to_pylist()]

        assert sorted(await asyncio.to_thread(run)) == [1, 2, 3, 4]


async def test_without_newer_ones_the_storage_refuses_and_the_statement_says_so(
    sts_server: S3Server, tmp_path: Path
) -> None:
    task, [first, _] = await asyncio.to_thread(write_files, sts_server, tmp_path)
    task = msgspec.structs.replace(task, credentials=open_session(sts_server, first, left_s=600))
    async with SmallBroker() as small:
        query = small.open("q", [task], retries=0)
        with pytest.raises(EngineUnavailable) as raised:
            await small.read(query, "f0", scan=governed_batches)
        error = await asyncio.wait_for(query.failed, 30)
    assert type(error) is StorageRefused
    for text in (str(error), str(raised.value)):
        assert task.credentials.properties["s3.access-key-id"] not in text
        assert sts_server.bucket not in text
