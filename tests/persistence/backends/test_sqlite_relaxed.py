"""Which groups of writes wait for the disk."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cynosure.common.errors import Unavailable
from cynosure.persistence.backends.sqlite import connection
from cynosure.persistence.backends.sqlite.same_file import SameFile
from cynosure.persistence.backends.sqlite.writer import Writer

pytestmark = pytest.mark.anyio

NORMAL, FULL = 1, 2
"""Levels of `PRAGMA synchronous`: with a write-ahead log, FULL flushes at every COMMIT, NORMAL does not."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    connection.create(path, 1.0)
    return path


@pytest.fixture
def lock_wanted() -> threading.Event:
    return threading.Event()


@pytest.fixture
async def writer(path: Path, lock_wanted: threading.Event) -> AsyncIterator[Writer]:
    def open_writer() -> sqlite3.Connection:
        opened = connection.open_writer(path, 1.0, None)
        opened.set_trace_callback(lambda sql: lock_wanted.set() if sql.startswith("BEGIN") else None)
        return opened

    same_file = SameFile(path)
    writer = Writer(path, open_writer, 30.0, same_file)
    yield writer
    await writer.close()


def level(of: sqlite3.Connection) -> int:
    """The level at which the transaction is going to be committed."""
    assert of.in_transaction
    (found,) = of.execute("PRAGMA synchronous").fetchone()
    return int(found)


def mark(number: int) -> Callable[[sqlite3.Connection], int]:
    def write(to: sqlite3.Connection) -> int:
        to.execute(f"INSERT INTO refs VALUES ('r', 'c', 'ref {number}', 1, 0, x'', 5)")
        return level(to)

    return write


async def test_only_a_relaxed_write_is_committed_without_a_flush(writer: Writer) -> None:
    levels = [
        await writer.run(mark(number), is_relaxed=is_relaxed)
        for number, is_relaxed in enumerate([False, True, True, False, True, False])
    ]

    assert levels == [FULL, NORMAL, NORMAL, FULL, NORMAL, FULL]


async def test_a_relaxed_write_in_the_company_of_another_is_flushed_with_it(
    writer: Writer, path: Path, lock_wanted: threading.Event
) -> None:
    await writer.run(mark(0))
    locker = sqlite3.connect(path, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    lock_wanted.clear()
    strict = asyncio.ensure_future(writer.run(mark(1)))
    await asyncio.to_thread(lock_wanted.wait)
    relaxed = asyncio.ensure_future(writer.run(mark(2), is_relaxed=True))
    await asyncio.sleep(0)
    locker.execute("ROLLBACK")

    assert list(await asyncio.gather(strict, relaxed)) == [FULL, FULL]
    locker.close()


async def test_a_write_that_joins_relaxed_ones_waiting_for_the_lock_is_flushed_all_the_same(
    writer: Writer, path: Path, lock_wanted: threading.Event
) -> None:
    await writer.run(mark(0))
    locker = sqlite3.connect(path, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    lock_wanted.clear()
    first = asyncio.ensure_future(writer.run(mark(1), is_relaxed=True))
    await asyncio.to_thread(lock_wanted.wait)
    others = [
        asyncio.ensure_future(writer.run(mark(number), is_relaxed=number % 2 == 0)) for number in range(2, 8)
    ]
    await asyncio.sleep(0)
    locker.execute("ROLLBACK")

    assert await first == NORMAL
    levels = await asyncio.gather(*others)
    assert levels[1::2] == [FULL] * 3
    (count,) = locker.execute("SELECT count(*) FROM refs").fetchone()
    assert count == 8
    locker.close()


async def test_closing_finishes_those_who_had_to_wait_for_the_next_turn(
    writer: Writer, path: Path, lock_wanted: threading.Event
) -> None:
    await writer.run(mark(0))
    locker = sqlite3.connect(path, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    lock_wanted.clear()
    relaxed = asyncio.ensure_future(writer.run(mark(1), is_relaxed=True))
    await asyncio.to_thread(lock_wanted.wait)
    strict = asyncio.ensure_future(writer.run(mark(2)))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(writer.close())
    await asyncio.sleep(0)
    locker.execute("ROLLBACK")

    await closing

    assert list(await asyncio.gather(relaxed, strict)) == [NORMAL, FULL]
    locker.close()


async def test_a_failure_among_relaxed_writes_is_its_own_and_leaves_the_level_right(writer: Writer) -> None:
    def fail(to: sqlite3.Connection) -> int:
        to.execute("INSERT INTO no_such_table VALUES (1)")
        return level(to)

    results = await asyncio.gather(
        writer.run(mark(1), is_relaxed=True),
        writer.run(fail, is_relaxed=True),
        writer.run(mark(2), is_relaxed=True),
        writer.run(mark(3)),
        return_exceptions=True,
    )

    assert type(results[1]) is Unavailable
    assert results[3] == FULL
    assert [type(results[0]), type(results[2])] == [int, int]
    assert await writer.run(mark(4)) == FULL
    assert await writer.run(mark(5), is_relaxed=True) == NORMAL
