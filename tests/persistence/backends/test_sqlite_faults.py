"""Real faults of files, disks, locks and processes."""

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cynosure.common.errors import (
    CynosureError,
    Damaged,
    Misconfigured,
    NewerFormat,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.persistence.backends.sqlite.connection import open_writer
from cynosure.persistence.backends.sqlite.same_file import SameFile
from cynosure.persistence.backends.sqlite.writer import Writer
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.spi import Backend
from cynosure.testing.backend_kit.samples import fetch_ref, fetch_row, fixed, obj_key, reference, scan_all
from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes

pytestmark = pytest.mark.anyio

LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
async def backend(path: Path) -> AsyncIterator[Backend]:
    backend = open_backend(f"sqlite:{path}?busy_timeout_s=0.2")
    await backend.setup()
    yield backend
    await backend.close()


async def refusal(*calls: Awaitable[object]) -> CynosureError:
    """The error with which all of the calls are refused."""
    errors = await asyncio.gather(*calls, return_exceptions=True)
    (kind,) = {type(error) for error in errors}
    assert issubclass(kind, CynosureError), errors
    (error, *_) = errors
    assert isinstance(error, CynosureError)
    return error


# --- locks and other processes -------------------------------------------------------------------


async def test_a_lock_kept_by_another_process_is_unavailable_after_the_bound_and_reads_go_on(
    backend: Backend, path: Path, processes: Processes
) -> None:
    await backend.insert_ref(reference(1))
    locker = await processes.start(
        "locker", [sys.executable, "-c", LOCK, str(path)], ready=log_ready("locked")
    )

    error = await refusal(backend.swap_ref(reference(1), reference(2), [fixed(2)]), backend.write([fixed(3)]))

    assert type(error) is Unavailable
    assert "process" in error.fix
    assert await fetch_ref(backend) == reference(1)
    locker.kill9()
    assert await backend.swap_ref(reference(1), reference(2), [fixed(2)])
    assert await backend.fetch([obj_key(2), obj_key(3)]) == [fixed(2), None]


async def test_a_write_waits_for_a_lock_that_is_kept_for_less_than_the_bound(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}?busy_timeout_s=30")
    await backend.setup()
    locker = sqlite3.connect(path, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")

    writes = [asyncio.ensure_future(backend.write([fixed(id_)])) for id_ in (1, 2, 3)]
    await asyncio.wait(writes, timeout=0.05)
    assert not any(write.done() for write in writes)
    locker.execute("ROLLBACK")
    locker.close()
    await asyncio.gather(*writes)

    assert await backend.fetch([obj_key(id_) for id_ in (1, 2, 3)]) == [fixed(1), fixed(2), fixed(3)]
    await backend.close()


async def test_several_processes_on_one_file_lose_no_update(
    path: Path, start_store_process: Callable[..., Awaitable[ManagedProcess]]
) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()
    counter = reference(1, key=reference(1).key._replace(name="counter", catalog="c"))
    await backend.insert_ref(counter)

    started = [await start_store_process("count", f"sqlite:{path}", 40) for _ in range(3)]
    codes = [await process.wait_exit(timeout_s=60) for process in started]

    assert codes == [0, 0, 0]
    found = await fetch_ref(backend, counter.key)
    assert found is not None
    assert found.head == 1 + 3 * 40
    await backend.close()


async def test_what_a_killed_process_was_acknowledged_is_there(
    path: Path,
    start_store_process: Callable[..., Awaitable[ManagedProcess]],
    check_acknowledged: Callable[[Backend, ManagedProcess], Awaitable[int]],
) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()

    for _ in range(3):
        process = await start_store_process("move", f"sqlite:{path}", 8)
        await process.wait_until(log_ready("r0 12\n"))
        process.kill9()

        assert await check_acknowledged(backend, process) >= 11
        await backend.delete([head.key for head in await scan_all(backend, 1000)])
        for ref in await backend.list_refs():
            assert await backend.delete_ref(ref)
    await backend.close()


async def test_what_a_killed_process_was_acknowledged_relaxed_is_there(
    path: Path,
    start_store_process: Callable[..., Awaitable[ManagedProcess]],
    check_relaxed: Callable[[Backend, ManagedProcess], Awaitable[int]],
) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()

    process = await start_store_process("relax", f"sqlite:{path}", 4)
    await process.wait_until(log_ready("w0 40\n"))
    process.kill9()

    assert await check_relaxed(backend, process) >= 40
    await backend.close()


# --- disks ---------------------------------------------------------------------------------------


async def test_a_full_file_refuses_what_does_not_fit_and_keeps_the_rest(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}?max_bytes=600000")
    await backend.setup()
    written = []
    error: Unavailable | None = None

    for id_ in range(1, 100):
        try:
            await backend.write([fixed(id_, b"x" * 50_000)])
        except Unavailable as refused:
            error = refused
            break
        written.append(obj_key(id_))

    assert error is not None
    assert "space" in error.fix
    assert None not in await backend.fetch(written)
    assert await fetch_row(backend, obj_key(len(written) + 1)) is None
    await backend.delete(written[:3])
    await backend.write([fixed(200, b"x" * 50_000)])
    await backend.close()


async def test_a_write_that_does_not_fit_does_not_hurt_those_beside_it(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}?max_bytes=600000")
    await backend.setup()
    await backend.insert_ref(reference(1))

    # Queued together, so they share a transaction at first.
    outcomes = await asyncio.gather(
        backend.write([fixed(1)]),
        backend.write([fixed(2, b"x" * 1_000_000)]),
        backend.swap_ref(reference(1), reference(2), [fixed(3)]),
        backend.swap_ref(reference(1), reference(9), [fixed(4)]),
        backend.write([fixed(5, b"x" * 1_000_000)]),
        backend.write([fixed(6)]),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        Unavailable,
        bool,
        bool,
        Unavailable,
        type(None),
    ]
    assert outcomes[2:4] == [True, False]
    found = await backend.fetch([obj_key(id_) for id_ in range(1, 7)])
    assert [row is not None for row in found] == [True, False, True, False, False, True]
    await backend.close()


async def test_a_disk_that_fails_in_the_middle_loses_nothing_that_was_acknowledged(
    path: Path,
    start_store_process: Callable[..., Awaitable[ManagedProcess]],
    check_acknowledged: Callable[[Backend, ManagedProcess], Awaitable[int]],
) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()

    process = await start_store_process("fill", f"sqlite:{path}", 300_000)
    code = await process.wait_exit()

    assert code == 0
    # A failed write of the log's last frames: it may be there or not, and the process must not say which.
    assert "refused OutcomeUnknown\n" in process.log()
    assert await check_acknowledged(backend, process) >= 5
    await backend.close()


@contextmanager
def without_root() -> Iterator[None]:
    """Root may write everywhere, so become nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_read_only_file_can_be_read_and_says_why_it_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "store.db")
        backend = open_backend(f"sqlite:{path}")
        await backend.setup()
        await backend.write([fixed(1)])
        # It keeps the log's files in place, without which nobody could even read.
        keeper = sqlite3.connect(path)
        keeper.execute("SELECT count(*) FROM objects").fetchall()
        await backend.close()
        for file in Path(directory).iterdir():
            file.chmod(0o444)
        Path(directory).chmod(0o555)
        with without_root():
            backend = open_backend(f"sqlite:{path}")

            found = await fetch_row(backend, obj_key(1))
            error = await refusal(backend.write([fixed(2)]))

            await backend.close()
        keeper.close()
        Path(directory).chmod(0o755)
    assert found == fixed(1)
    assert type(error) is Unavailable
    assert "writable" in error.fix


# --- files that are not ours ---------------------------------------------------------------------


async def test_a_file_that_is_no_database_is_refused_untouched(path: Path) -> None:
    path.write_text("This is a shopping list, not a database. " * 50)
    before = path.read_bytes()
    backend = open_backend(f"sqlite:{path}")

    error = await refusal(
        backend.setup(), backend.fetch([obj_key(1)]), backend.write([fixed(1)]), backend.list_refs()
    )

    assert type(error) is Damaged
    assert path.name in str(error)
    assert path.read_bytes() == before
    await backend.close()


async def test_a_damaged_page_is_reported_as_damage(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()
    await backend.write([fixed(id_, b"x" * 3000) for id_ in range(1, 200)])
    await backend.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))

    backend = open_backend(f"sqlite:{path}")
    error = await refusal(
        backend.fetch([obj_key(1)]), backend.scan(after=None, limit=999), backend.write([fixed(500)])
    )

    assert type(error) is Damaged
    assert "backup" in error.fix
    await backend.close()


async def test_the_database_of_another_program_is_refused_untouched(path: Path) -> None:
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE songs (title TEXT)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    backend = open_backend(f"sqlite:{path}")

    error = await refusal(backend.setup(), backend.fetch([obj_key(1)]), backend.write([fixed(1)]))

    assert type(error) is Misconfigured
    assert "another file" in error.fix
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    await backend.close()


async def test_a_file_laid_out_by_a_newer_version_is_refused_untouched(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()
    await backend.close()
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    before = path.read_bytes()

    backend = open_backend(f"sqlite:{path}")
    error = await refusal(backend.setup(), backend.fetch([obj_key(1)]), backend.write([fixed(1)]))

    assert type(error) is NewerFormat
    assert error.details["format_version"] == 99
    assert path.read_bytes() == before
    await backend.close()


async def test_the_file_says_whose_it_is_and_how_it_is_laid_out(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()
    await backend.close()

    # Offsets of the file format: application id at 68, user version at 60. Stored data, so golden.
    header = path.read_bytes()[:100]
    assert header[68:72] == b"CYNO"
    assert header[60:64] == b"\0\0\0\x01"


async def test_a_path_that_cannot_be_a_file_is_misconfigured(tmp_path: Path) -> None:
    directory = open_backend(f"sqlite:{tmp_path}")
    homeless = open_backend(f"sqlite:{tmp_path / 'none' / 'store.db'}")

    in_directory = await refusal(directory.setup(), directory.fetch([obj_key(1)]))
    in_nowhere = await refusal(homeless.setup(), homeless.write([fixed(1)]))

    assert type(in_directory) is type(in_nowhere) is Misconfigured
    assert "Name a file" in in_directory.fix
    assert "mkdir" in in_nowhere.fix
    assert os.listdir(tmp_path) == []
    await directory.close()
    await homeless.close()


async def test_only_setup_creates_the_file(path: Path) -> None:
    backend = open_backend(f"sqlite:{path}")

    error = await refusal(backend.fetch([obj_key(1)]), backend.write([fixed(1)]))

    assert type(error) is Misconfigured
    assert "store init" in error.fix
    assert not path.exists()
    await backend.close()


# --- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:",
        "sqlite:?busy_timeout_s=1",
        "sqlite::memory:",
        "sqlite:///tmp/store.db",
        "sqlite:a%00b",
        "sqlite:store.db?busy_timeout_s=soon",
        "sqlite:store.db?busy_timeout_s=-1",
        "sqlite:store.db?busy_timeout_s=nan",
        "sqlite:store.db?synchronous=off",
    ],
)
def test_a_url_that_cannot_be_read_is_misconfigured(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        open_backend(url)

    assert refused.value.fix


async def test_a_percent_encoded_path_names_the_decoded_file(tmp_path: Path) -> None:
    backend = open_backend(f"sqlite:{tmp_path}/what%3F 100%25.db")

    await backend.setup()
    await backend.close()

    assert (tmp_path / "what? 100%.db").exists()


async def test_a_relative_path_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    backend = open_backend("sqlite:store.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    await backend.setup()
    await backend.close()

    assert (tmp_path / "store.db").exists()


# --- a file that is taken away ------------------------------------------------------------------


async def test_a_write_to_a_file_that_was_replaced_is_refused_also_on_a_new_connection(
    path: Path, backend: Backend
) -> None:
    await backend.write([fixed(1)])
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)

    for _ in range(2):  # the second time on a connection that could be opened on the new file
        error = await refusal(backend.write([fixed(2)]), backend.insert_ref(reference(1)))
        assert type(error) is Unavailable
        assert "restart" in error.fix

    with sqlite3.connect(path) as found:
        assert found.execute("SELECT count(*) FROM refs").fetchall() == [(0,)]
    found.close()


async def test_a_commit_into_a_file_that_is_deleted_meanwhile_is_not_acknowledged(path: Path) -> None:
    same_file = SameFile(path)
    backend = open_backend(f"sqlite:{path}")
    await backend.setup()
    await backend.close()

    def delete_and_write(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO refs VALUES ('r', 'c', 'main', 1, 0, x'', 5)")
        path.unlink()

    writer = Writer(path, lambda: open_writer(path, 1.0, None), 1.0, same_file)
    with pytest.raises(OutcomeUnknown, match="deleted or replaced"):
        await writer.run(delete_and_write)
    await writer.close()
