import asyncio
import os
import pickle
import socket
import threading

import msgspec
import pyarrow as pa
import pytest

from cynosure.common.errors import CynosureError
from cynosure.query.errors import NotReadable
from cynosure.query.stream.frames import ROW_COLUMN
from cynosure.query.worker.identity import Attempt, current_attempt, name_worker
from cynosure.query.worker.mapped import make_reader, read_fragments
from cynosure.testing.small_broker import (
    SCHEMA,
    SmallBroker,
    make_order,
    make_task,
    number_batches,
    scan_files,
)

pytestmark = pytest.mark.anyio


async def test_the_closure_holds_tokens_and_nothing_else_that_is_secret():
    from pyspark import cloudpickle

    async with SmallBroker() as small:
        query = small.open("q", [make_task(f"f{n}") for n in range(50)])
        read = make_reader(
            query.address,
            query.ca_pem,
            "q",
            list(query.tokens),
            query.tokens,
            SCHEMA.serialize().to_pybytes(),
        )

        pickled = cloudpickle.dumps(read)

        for secret in (b"the-credential", b"filter-literal", b"hidden-bucket", b".parquet", b"s3."):
            assert secret not in pickled
        assert all(token.encode() in pickled for token in query.tokens.values())
        # Spark writes closures of more than 1 MB to disk.
        assert len(pickled) < 16_000
        # It is whole: an executor that has only these bytes, and the package, can read.
        assert callable(pickle.loads(pickled))
        assert "token" not in repr(make_order(query, ["f0"]))


async def test_a_relation_without_columns_gives_a_row_for_each():
    def count(task, watch):
        rows = pa.array([{}] * 5, pa.struct([]))
        yield pa.RecordBatch.from_struct_array(rows)

    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        order = make_order(query, ["f0"])
        order = msgspec.structs.replace(order, schema=b"")
        batches = await asyncio.to_thread(
            lambda: list(read_fragments(order, number_batches(1), attempt=Attempt(), scan=count))
        )
        assert [batch.schema.names for batch in batches] == [[ROW_COLUMN]]
        assert batches[0].column(0).to_pylist() == [0] * 5
        assert batches[0].schema.types == [pa.int8()]


async def test_columns_where_none_were_asked_for_are_an_error():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        order = msgspec.structs.replace(make_order(query, ["f0"]), schema=b"")
        with pytest.raises(CynosureError):
            await asyncio.to_thread(
                lambda: list(read_fragments(order, number_batches(1), attempt=Attempt(), scan=scan_files))
            )
        assert type(await query.failed) is NotReadable


async def test_a_worker_keeps_nothing_over_a_hundred_fragments():
    names = [f"f{n}" for n in range(100)]
    async with SmallBroker() as small:
        query = small.open("q", names)
        order = make_order(query, names)
        threads = threading.active_count()
        files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

        def run() -> int:
            batches = read_fragments(order, number_batches(100), attempt=Attempt(), scan=scan_files)
            return sum(batch.num_rows for batch in batches)

        assert await asyncio.to_thread(run) == 300

        await small.wait_for(lambda: len(small.reports) == 100)
        await small.wait_for(lambda: not small.broker._connections)
        # One thread of the pool that `to_thread` keeps.
        await small.wait_for(lambda: threading.active_count() <= threads + 1)
        await small.wait_for(lambda: "cynosure-beat" not in {each.name for each in threading.enumerate()})
        if files:
            await small.wait_for(lambda: len(os.listdir("/proc/self/fd")) <= files + 2)
        assert sum(report.rows for report in small.reports) == 300


async def test_without_a_broker_the_error_is_constant(monkeypatch):
    from cynosure.query.worker import stream_client

    monkeypatch.setattr(stream_client, "CONNECT_S", 0.5)
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        order = make_order(query, ["f0"])
    with pytest.raises(CynosureError) as raised:
        await asyncio.to_thread(
            lambda: list(read_fragments(order, number_batches(1), attempt=Attempt(), scan=scan_files))
        )
    assert raised.value.details == {"kind": "Unavailable", "fragment": "f0"}
    assert str(raised.value) == "A scan failed (kind='Unavailable', fragment='f0')"


LOG = "http://10.1.1.1:8081/logPage/?appId=a&executorId=7&logType=stderr"


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"SPARK_LOG_URL_STDERR": LOG}, "10.1.1.1/7"),
        ({"SPARK_EXECUTOR_ID": "4"}, f"{socket.gethostname()}/4"),
        (
            {"CONTAINER_ID": "c_1", "SPARK_LOG_URL_STDERR": "http://n/c_1"},
            f"{socket.gethostname()}/c_1",
        ),
        ({}, f"{socket.gethostname()}/driver"),
    ],
    ids=["standalone", "kubernetes", "yarn", "local"],
)
async def test_a_worker_is_named_by_what_the_driver_calls_it(environment, name):
    assert name_worker(environment) == name


async def test_outside_of_spark_there_is_one_attempt():
    assert current_attempt().attempt_id == 0
    assert current_attempt().process.endswith(f":{os.getpid()}")
