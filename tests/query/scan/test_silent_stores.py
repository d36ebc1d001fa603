"""A store that says nothing any more costs a scan its time and an error, on the fast path too, and no row."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.scan import bounded
from cynosure.query.scan.governed import governed_batches
from cynosure.query.scan.memory import PROCESS
from cynosure.query.scan.port import Unwatched
from cynosure.query.scan_task import Credentials, ScanTask
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Delay, Request, Respond
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.scan_kit import read_table, task_from_arrow

pytestmark = pytest.mark.anyio
ROWS = 3_000
TABLE = pa.table({"id": pa.array(range(ROWS), pa.int64()), "name": [f"name {each}" for each in range(ROWS)]})
TIMEOUT_S = 1.0
SILENCE_S = 60.0
SOON_S = 15.0
"""Two operations of one second each, on a busy machine."""


@pytest.fixture
async def proxy(plain_s3_server: S3Server) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.to_url(plain_s3_server.endpoint) as proxy:
        yield proxy
        await end_what_is_left(proxy)


async def end_what_is_left(proxy: FaultProxy) -> None:
    """It reads on, for nobody, when the store answers."""
    proxy.clear()
    proxy.cut_all()
    async with asyncio.timeout(SILENCE_S):
        while bounded._left:  # noqa: ASYNC110 - threads of DataFusion move it
            await asyncio.sleep(0.05)


@pytest.fixture
def task(plain_s3_server: S3Server, proxy: FaultProxy, tmp_path: Path) -> ScanTask:
    """A file of six row groups, read through the proxy, each a batch."""
    server = plain_s3_server
    local = task_from_arrow(tmp_path, TABLE, row_group_rows=500, batch_rows=500)
    place = server.fresh_location("scan")
    path = Location.parse(place).child("f.parquet")
    obstore.put(server.open_bucket(), "/".join(path.segments), Path(local.files[0].path).read_bytes())
    properties = {
        "s3.access-key-id": server.access_key_id,
        "s3.secret-access-key": server.secret_access_key,
        "s3.endpoint": proxy.url,
        "client.region": server.region,
        "s3.path-style-access": "true",
    }
    return replace(
        local,
        files=(replace(local.files[0], path=path.text),),
        places=(place,),
        file_roots=(),
        credentials=Credentials(1, properties),
        storage={"operation_timeout_s": TIMEOUT_S, "stall_timeout_s": TIMEOUT_S, "retries": 1},
    )


def is_datafusion(request: Request) -> bool:
    """Whether it is not our own client that asks: that one has a name."""
    return b"user-agent: cynosure" not in request.data.lower()


@contextmanager
def soon() -> Iterator[None]:
    begun_s = time.monotonic()
    yield
    assert time.monotonic() - begun_s < SOON_S


async def test_the_fast_path_reads_it_while_the_store_answers(
    proxy: FaultProxy, task: ScanTask, only_fast: None
) -> None:
    asked = proxy.add(Delay(), when=is_datafusion, times=None)
    assert await asyncio.to_thread(read_table, task) == TABLE
    assert asked.hits


@pytest.mark.parametrize("fault", [Delay(request_s=SILENCE_S), Respond(503)])
async def test_where_only_the_fast_path_gets_no_answer_the_complete_one_reads(
    fault: Any, proxy: FaultProxy, task: ScanTask
) -> None:
    before = PROCESS.held_bytes
    asked = proxy.add(fault, when=is_datafusion, times=None)
    with soon():
        assert await asyncio.to_thread(read_table, task) == TABLE
    assert asked.hits
    await end_what_is_left(proxy)
    assert PROCESS.held_bytes == before


async def test_a_store_that_falls_silent_behind_the_footer_is_an_error_in_time(
    proxy: FaultProxy, task: ScanTask
) -> None:
    footer = proxy.add(Delay(request_s=SILENCE_S), times=None, when=_after_first(is_datafusion))
    with soon(), pytest.raises(StorageUnavailable, match="does not answer"):
        await asyncio.to_thread(read_table, task)
    assert footer.hits


@pytest.mark.parametrize("fault", [Delay(request_s=SILENCE_S), Respond(503)])
async def test_a_store_that_falls_silent_between_row_groups_is_an_error_in_time(
    fault: Any, proxy: FaultProxy, task: ScanTask, only_fast: None
) -> None:
    before = PROCESS.held_bytes
    batches = governed_batches(task, Unwatched(task.credentials))
    first = await asyncio.to_thread(next, batches)
    assert 0 < first.num_rows < ROWS
    proxy.add(fault, times=None)
    with soon(), pytest.raises(StorageUnavailable, match="does not answer"):
        await asyncio.to_thread(list, batches)
    # What DataFusion holds of a row group counts until its client gives up.
    assert PROCESS.held_bytes > before
    await end_what_is_left(proxy)
    assert PROCESS.held_bytes == before


def _after_first(when: Any) -> Any:
    """Every request from the first one on that matches."""
    is_on = False

    def match(request: Request) -> bool:
        nonlocal is_on
        is_on = is_on or when(request)
        return is_on

    return match
