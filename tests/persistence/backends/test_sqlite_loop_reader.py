"""Reads on the event loop's own thread: what they see, and what they do when the file is not as it was."""

import os
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.common.errors import Damaged, Unavailable
from cynosure.persistence.backends.sqlite import SqliteBackend
from cynosure.persistence.backends.sqlite.backend import INLINE_KEYS
from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit.samples import REF, fetch_ref, fetch_row, fixed, obj_key, reference
from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import Processes

pytestmark = pytest.mark.anyio

RECOVER = """
import fcntl, sys, time
# Where SQLite (os_unix.c) has its locks in the file: to write, to move the log, to recover.
index = open(sys.argv[1] + "-shm", "r+b", buffering=0)
fcntl.lockf(index, fcntl.LOCK_EX, 3, 120)
index.write(bytes(136))
print("recovering", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def backend(path: Path) -> AsyncIterator[SqliteBackend]:
    """Looks at its file with every read, and has read once: the first read opens connections on a thread."""
    backend = SqliteBackend(path, file_check_s=0)
    await backend.setup()
    await backend.insert_ref(reference(1))
    await fetch_ref(backend)
    yield backend
    await backend.close()


async def test_the_first_read_is_left_to_a_thread(path: Path, backend: SqliteBackend) -> None:
    fresh = open_backend(f"sqlite:{path}")

    assert fresh.fetch_refs_now([REF]) is None
    assert await fetch_ref(fresh) == reference(1)
    assert fresh.fetch_refs_now([REF]) == [reference(1)]
    await fresh.close()


async def test_many_references_are_left_to_a_thread(backend: SqliteBackend) -> None:
    assert backend.fetch_refs_now([REF] * INLINE_KEYS) == [reference(1)] * INLINE_KEYS
    assert backend.fetch_refs_now([REF] * (INLINE_KEYS + 1)) is None


async def test_what_another_program_commits_is_seen_at_once(path: Path, backend: SqliteBackend) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    found = []
    for head in (5, 6, 7):
        other.execute("UPDATE refs SET head = ?", (head,))
        found.append(backend.fetch_refs_now([REF]))
    other.close()

    assert found == [[reference(5)], [reference(6)], [reference(7)]]


async def test_what_another_program_has_not_committed_is_not_seen(path: Path, backend: SqliteBackend) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE refs SET head = 9")

    assert backend.fetch_refs_now([REF]) == [reference(1)]

    other.execute("ROLLBACK")
    other.close()
    assert backend.fetch_refs_now([REF]) == [reference(1)]


async def test_a_read_leaves_no_transaction_that_keeps_the_log_from_being_emptied(
    path: Path, backend: SqliteBackend
) -> None:
    assert backend.fetch_refs_now([REF]) == [reference(1)]
    assert await fetch_row(backend, obj_key(1)) is None

    other = sqlite3.connect(path, isolation_level=None)
    (is_hindered, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    other.close()

    assert not is_hindered
    assert path.with_name("store.db-wal").stat().st_size == 0
    assert backend.fetch_refs_now([REF]) == [reference(1)]


async def test_while_another_process_recovers_the_log_the_loop_does_not_wait(
    path: Path, backend: SqliteBackend, processes: Processes
) -> None:
    recovering = await processes.start(
        "recovering", [sys.executable, "-c", RECOVER, str(path)], ready=log_ready("recovering")
    )

    assert backend.fetch_refs_now([REF]) is None

    recovering.kill9()
    assert await fetch_ref(backend) == reference(1)
    assert backend.fetch_refs_now([REF]) == [reference(1)]


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_file_that_is_deleted_or_replaced_is_not_read_any_more(
    path: Path, backend: SqliteBackend, is_replaced: bool
) -> None:
    if is_replaced:
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        copy.replace(path)
    else:
        path.unlink()

    with pytest.raises(Unavailable, match="deleted or replaced"):
        backend.fetch_refs_now([REF])
    with pytest.raises(Unavailable, match="deleted or replaced"):
        await fetch_ref(backend)
    with pytest.raises(Unavailable, match="deleted or replaced"):
        await backend.scan(after=None, limit=9)
    with pytest.raises(Unavailable, match="deleted or replaced"):
        await backend.write([fixed(1)])


async def test_a_file_that_is_put_back_is_read_again(path: Path, backend: SqliteBackend) -> None:
    aside = path.rename(path.with_name("aside.db"))
    with pytest.raises(Unavailable):
        backend.fetch_refs_now([REF])

    aside.rename(path)

    assert backend.fetch_refs_now([REF]) == [reference(1)]


async def test_damage_is_told_as_damage(path: Path) -> None:
    first = SqliteBackend(path)
    await first.setup()
    await first.insert_ref(reference(1))
    await first.close()
    with sqlite3.connect(path) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'refs'").fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))
    backend = SqliteBackend(path)
    await backend.fetch([obj_key(1)])  # from a page that is whole

    with pytest.raises(Damaged, match="backup"):
        backend.fetch_refs_now([REF])
    await backend.close()


async def test_a_handle_does_not_work_in_a_process_that_was_forked_off(backend: SqliteBackend) -> None:
    child = os.fork()
    if child == 0:  # The copy of this process: it must end here, whatever happens.
        try:
            backend.fetch_refs_now([REF])
        except Unavailable:
            os._exit(42)
        finally:
            os._exit(1)

    _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - it ends by itself

    assert os.waitstatus_to_exitcode(status) == 42
    assert backend.fetch_refs_now([REF]) == [reference(1)]
