"""The SQLite backend: which call runs on which thread.

Writes run on the writer thread, in groups. Small reads run right on the event loop's thread: a reader of
a write-ahead log never waits for a writer, and one lookup takes some microseconds where a hop to a thread
and back takes a hundred. Reads that may be large, and reads that do meet a lock (another process recovers
the log after a crash), run on a reader thread. A slow disk is hardly met on the loop's thread: what is read
there was written a moment ago or is read all the time, so it is in memory, and if not it is a few pages.

A maintainer must not break: reads on the loop's thread are few keys each and never wait for a lock
(`loop_reader.py`).
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote

from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.persistence import row_rules
from cynosure.persistence.backend_options import read_number, read_options
from cynosure.persistence.backends.sqlite import connection, statements
from cynosure.persistence.backends.sqlite.faults import is_busy, translate
from cynosure.persistence.backends.sqlite.loop_reader import FILE_CHECK_S, LoopReader
from cynosure.persistence.backends.sqlite.same_file import SameFile
from cynosure.persistence.backends.sqlite.writer import Writer
from cynosure.persistence.spi import (
    Backend,
    ConditionalWrite,
    DeleteIf,
    Limits,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
    RowHead,
)

ROW_BYTES: Final = 1 << 20
BUSY_TIMEOUT_S: Final = 5.0
"""How long a call waits for other processes' locks before it is `Unavailable`."""
INLINE_KEYS: Final = 16
"""Most keys that are read on the event loop's thread."""

T = TypeVar("T")


class SqliteBackend:
    """One database file, used by this process through a few connections."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        max_bytes: int | None = None,
        file_check_s: float = FILE_CHECK_S,
    ) -> None:
        # Absolute now, so that a later change of the working directory does not change the store.
        self._path = path.absolute()
        self._busy_timeout_s = busy_timeout_s
        self._same_file = SameFile(self._path)
        self._writer = Writer(
            self._path,
            partial(connection.open_writer, self._path, busy_timeout_s, max_bytes),
            busy_timeout_s,
            self._same_file,
        )
        self._loop_reader: LoopReader | None = None
        self._reader: sqlite3.Connection | None = None
        # One thread, so that the connection it uses needs no lock.
        self._reader_thread = ThreadPoolExecutor(1, thread_name_prefix="cynosure-sqlite-reader")
        self._file_check_s = file_check_s
        self._process_id = os.getpid()
        self._is_closed = False

    @property
    def limits(self) -> Limits:
        return _LIMITS

    def __repr__(self) -> str:
        return f"SqliteBackend({str(self._path)!r})"

    async def setup(self) -> None:
        self._refuse_if_unusable()
        await asyncio.to_thread(connection.create, self._path, self._busy_timeout_s)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        await self._writer.close()
        await asyncio.to_thread(self._reader_thread.shutdown)
        for reader in (self._loop_reader, self._reader):
            if reader is not None:
                reader.close()

    # --- objects -------------------------------------------------------------------------------

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        row_rules.check_obj_keys(keys)
        return await self._read(partial(statements.fetch, keys=keys), is_small=len(keys) <= INLINE_KEYS)

    async def write(self, rows: Sequence[Row]) -> None:
        row_rules.check_immutable(rows, _LIMITS)
        if rows:
            await self._write(partial(statements.write, rows=rows), _blob_bytes(rows))

    async def insert(self, row: Row) -> bool:
        row_rules.check_conditional(row, _LIMITS)
        return await self._write(partial(statements.insert, row=row), len(row.blob))

    async def swap(self, row: Row, expected_token: str) -> bool:
        row_rules.check_conditional(row, _LIMITS)
        row_rules.check_token(expected_token)
        return await self._write(
            partial(statements.swap, row=row, expected_token=expected_token), len(row.blob)
        )

    async def delete_if(self, key: ObjKey, expected_token: str) -> bool:
        row_rules.check_obj_keys((key,))
        row_rules.check_token(expected_token)
        return await self._write(partial(statements.delete_if, key=key, expected_token=expected_token))

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        row_rules.check_each(writes, _LIMITS)
        self._refuse_if_unusable()
        if not writes:
            return []
        blob_bytes = _blob_bytes([write.row for write in writes if not isinstance(write, DeleteIf)])
        write = partial(statements.write_each, writes=writes)
        return await self._writer.run(write, blob_bytes, is_relaxed=is_relaxed)

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        row_rules.check_obj_keys(keys)
        if keys:
            await self._write(partial(statements.delete, keys=keys))

    async def scan(self, *, after: ObjKey | None, limit: int) -> list[RowHead]:
        row_rules.check_scan(after, limit)
        return await self._read(partial(statements.scan, after=after, limit=limit), is_small=False)

    # --- references ----------------------------------------------------------------------------

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        row_rules.check_ref_keys(keys)
        return await self._read(partial(statements.fetch_refs, keys=keys), is_small=len(keys) <= INLINE_KEYS)

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        self._refuse_if_unusable()
        reader = self._loop_reader
        if reader is None or len(keys) > INLINE_KEYS:
            return None
        reader.check_file()
        try:
            return reader.fetch_refs(keys) if keys else []
        except sqlite3.Error as error:
            if is_busy(error):
                return None
            raise translate(error, self._path) from error

    async def list_refs(self, realm: RealmId | None = None) -> list[Reference]:
        if realm is not None:
            row_rules.check_realm(realm)
        return await self._read(partial(statements.list_refs, realm=realm), is_small=False)

    async def insert_ref(self, ref: Reference) -> bool:
        row_rules.check_ref(ref)
        return await self._write(partial(statements.insert_ref, ref=ref))

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        row_rules.check_move(expected, updated)
        row_rules.check_immutable(rows, _LIMITS)
        return await self._write(
            partial(statements.swap_ref, expected=expected, updated=updated, rows=rows), _blob_bytes(rows)
        )

    async def delete_ref(self, expected: Reference) -> bool:
        row_rules.check_ref_keys((expected.key,))
        return await self._write(partial(statements.delete_ref, expected=expected))

    def hold_ref(self, key: RefKey, head_type: str) -> None:
        """Not offered: SQLite's only lock is that of the whole file; a turn would stop every other write."""

    # --- threads -------------------------------------------------------------------------------

    async def _write(self, write: Callable[[sqlite3.Connection], T], blob_bytes: int = 0) -> T:
        self._refuse_if_unusable()
        return await self._writer.run(write, blob_bytes)

    async def _read(self, read: Callable[[sqlite3.Connection], T], *, is_small: bool) -> T:
        self._refuse_if_unusable()
        if self._loop_reader is not None:
            self._loop_reader.check_file()
            if is_small:
                try:
                    return read(self._loop_reader.connection)
                except sqlite3.Error as error:
                    if not is_busy(error):
                        raise translate(error, self._path) from error
        return await asyncio.get_running_loop().run_in_executor(
            self._reader_thread, self._read_on_thread, read
        )

    def _read_on_thread(self, read: Callable[[sqlite3.Connection], T]) -> T:
        # Opening reads the disk and may meet a lock, so the loop's own connection is opened here as well.
        if self._reader is None:
            self._reader = self._open_reader()
        if self._loop_reader is None:
            self._loop_reader = LoopReader(self._open_reader(), self._same_file, self._file_check_s)
        reader = self._reader
        try:
            return connection.retry_while_busy(lambda: read(reader), self._busy_timeout_s)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    def _open_reader(self) -> sqlite3.Connection:
        self._same_file.begin()
        return connection.open_reader(self._path, self._busy_timeout_s)

    def _refuse_if_unusable(self) -> None:
        if self._is_closed:
            raise Unavailable("This database handle is closed", path=str(self._path))
        if os.getpid() != self._process_id:
            # SQLite's locks are the process's: a connection that crossed a fork has none, and would not know.
            raise Unavailable(
                "This database handle belongs to another process",
                fix="Open the store in each process, after it was forked.",
                path=str(self._path),
            )


_LIMITS: Final = Limits(
    row_bytes=ROW_BYTES, swap_carries_rows=True, is_shared=True, is_durable=True, is_local=True
)


def _blob_bytes(rows: Sequence[Row]) -> int:
    return sum(len(row.blob) for row in rows)


def open_backend(url: str, options: Mapping[str, str]) -> Backend:
    """`sqlite:PATH`, with options `busy_timeout_s` and `max_bytes` (how large the file may grow)."""
    path, _, query = url.removeprefix("sqlite:").partition("?")
    path = unquote(path)
    if not path or path.startswith((":", "//")) or "\0" in path:
        # sqlite:///x is a relative path to some programs and an absolute one to others.
        raise Misconfigured(
            "The database URL does not name a file in the way this database expects",
            fix="Write sqlite:PATH, as in sqlite:catalog.db or sqlite:/var/lib/cynosure/catalog.db. "
            "For a store in memory write memory:",
        )
    read = read_options(query, options, known={"busy_timeout_s", "max_bytes"})
    busy_timeout_s = read_number(read, "busy_timeout_s", BUSY_TIMEOUT_S, lowest=0, highest=3600)
    max_bytes = read_number(read, "max_bytes", 0, lowest=0, highest=1 << 47)
    return SqliteBackend(Path(path), busy_timeout_s=busy_timeout_s, max_bytes=int(max_bytes) or None)
