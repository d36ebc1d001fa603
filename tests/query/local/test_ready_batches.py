"""Batches that wait for DuckDB: they count, and never keep it from going on."""

from queue import Empty

import pyarrow as pa
import pytest

from cynosure.query.local.ready_batches import ReadyBatches
from cynosure.query.scan.memory import PROCESS, Budget

MIB = 2**20
BATCH = pa.record_batch({"id": pa.array(range(MIB // 8), pa.int64())})
LIMIT = 4 * MIB


def test_what_waits_counts_until_it_is_taken() -> None:
    before = PROCESS.held_bytes
    ready = ReadyBatches(LIMIT)
    assert ready.put(BATCH)
    assert ready.put(BATCH)
    assert PROCESS.held_bytes == before + 2 * MIB
    assert ready.get() is BATCH
    assert PROCESS.held_bytes == before + MIB
    ready.close()
    assert PROCESS.held_bytes == before


def test_without_memory_one_batch_waits_and_no_more() -> None:
    ready = ReadyBatches(LIMIT)
    with Budget(LIMIT).holding(LIMIT):
        assert ready.put(BATCH)
        assert not ready.put(BATCH)
        assert ready.get() is BATCH
        assert ready.put(BATCH)
    assert ready.put(BATCH)
    ready.close()


def test_few_batches_wait_and_words_of_threads_need_no_memory() -> None:
    ready = ReadyBatches(2**40)
    with Budget(2**40).holding(2**40):
        assert ready.put(None)
        assert ready.put(None)
        assert [ready.get(), ready.get()] == [None, None]
    with pytest.raises(Empty):
        ready.get()
    assert [ready.put(BATCH) for _ in range(5)] == [True] * 4 + [False]
    ready.close()


def test_after_its_end_nothing_is_taken_nor_counted() -> None:
    before = PROCESS.held_bytes
    ready = ReadyBatches(LIMIT)
    ready.close()
    assert not ready.put(BATCH)
    assert not ready.put(None)
    assert PROCESS.held_bytes == before
