"""Open a database file, tell whose it is, and lay it out.

A maintainer must not break: a file is identified before anything is written to it. What another
program or a newer version made is refused untouched.
"""

import os
import random
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from cynosure.common.errors import Misconfigured, NewerFormat
from cynosure.persistence.backends.sqlite.faults import is_busy, translate

APPLICATION_ID: Final = 0x43594E4F
"""ASCII "CYNO", in the file's header; `file` and SQLite itself show it."""
FORMAT_VERSION: Final = 1
"""Layout of the tables, in `PRAGMA user_version`. Raise it when an older version could not use the file."""

# Objects are kilobytes, so they live in an ordinary table with its key as an index: in a WITHOUT ROWID
# table such rows fill the inner pages of the tree, which measured twice the CPU per read and write.
_LAYOUT: Final = (
    """CREATE TABLE objects (
        realm TEXT NOT NULL, catalog TEXT NOT NULL, type TEXT NOT NULL, id INTEGER NOT NULL,
        blob BLOB NOT NULL, token TEXT NOT NULL, created_us INTEGER NOT NULL,
        PRIMARY KEY (realm, catalog, type, id))""",
    """CREATE TABLE refs (
        realm TEXT NOT NULL, catalog TEXT NOT NULL, name TEXT NOT NULL,
        head INTEGER NOT NULL, generation INTEGER NOT NULL, recent BLOB NOT NULL, created_us INTEGER NOT NULL,
        PRIMARY KEY (realm, catalog, name)) WITHOUT ROWID""",
)

_LONGEST_PAUSE_S: Final = 0.01
_CHECKPOINT_WAIT_MS: Final = 2000
# After a burst the log file shrinks back to this, so that it cannot stay as large as its worst moment.
_LOG_FILE_BYTES: Final = 64 << 20

T = TypeVar("T")


def create(path: Path, busy_timeout_s: float) -> None:
    """Make the file a store unless it is one. Several processes may do so at once."""
    if path.parent.is_dir() and not path.exists():
        _make_private(path)
    connection = _connect(path, mode="rwc")
    try:
        if _identify(connection, path, busy_timeout_s) is None:
            _use_log(connection, path, busy_timeout_s)
            _lay_out(connection, path, busy_timeout_s)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    finally:
        connection.close()


def open_writer(path: Path, busy_timeout_s: float, max_bytes: int | None) -> sqlite3.Connection:
    """A connection for the writer thread: an acknowledged COMMIT is on disk."""
    connection = _open(path, busy_timeout_s)
    try:
        # The mode is in the file, but another tool may have changed it.
        _use_log(connection, path, busy_timeout_s)
        set_flushing(connection, is_on=True)
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_FILE_BYTES}")
        # Not by itself after a COMMIT, but by `move_log_into_file`.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if max_bytes is not None:
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count = {max(1, max_bytes // page_bytes)}")
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection that cannot write and itself never waits for a lock."""
    connection = _open(path, busy_timeout_s)
    connection.execute("PRAGMA query_only = ON")
    return connection


def set_flushing(connection: sqlite3.Connection, *, is_on: bool) -> None:
    """Whether a COMMIT waits until it is on disk. Not within a transaction."""
    connection.execute(f"PRAGMA synchronous = {'FULL' if is_on else 'NORMAL'}")


def begin_write(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Take the file's write lock. Within it nothing waits for another process."""
    retry_while_busy(lambda: connection.execute("BEGIN IMMEDIATE"), busy_timeout_s)


def move_log_into_file(connection: sqlite3.Connection) -> None:
    """Copy what the log holds into the database file, so that the log begins anew.

    FULL keeps other processes from committing meanwhile. What SQLite does by itself (PASSIVE) does not,
    and before version 3.51.3 a commit of another process at the wrong moment could then damage the file.
    """
    connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")
    try:
        connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def retry_while_busy(action: Callable[[], T], busy_timeout_s: float) -> T:
    """Run `action` until no other connection is in its way, for this long at most.

    Not SQLite's own waiting: that does not cover every call, and its pauses grow to 100 ms, in which a
    busy neighbour takes the lock many times over.
    """
    waited_s = 0.0
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or waited_s >= busy_timeout_s:
                raise
        # Random, so that waiting processes do not keep in step.
        pause_s = random.uniform(0.0002, _LONGEST_PAUSE_S)  # noqa: S311
        time.sleep(pause_s)
        waited_s += pause_s


def roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction that failed. SQLite itself ended it after some errors."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _open(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    connection = _connect(path, mode="rw")
    try:
        version = _identify(connection, path, busy_timeout_s)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except BaseException:
        connection.close()
        raise
    if version is None:
        connection.close()
        raise _never_set_up(path)
    return connection


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    if path.is_dir():
        raise Misconfigured(
            "The path of the database is a directory",
            fix="Name a file, for example catalog.db in that directory.",
            path=str(path),
        )
    if not path.parent.is_dir():
        raise Misconfigured(
            "The directory of the database file does not exist",
            fix=f"Create it: mkdir -p '{path.parent}'",
            path=str(path),
        )
    if mode == "rw" and not path.exists():
        raise _never_set_up(path)
    try:
        # Threads hand a connection over only to close it.
        return sqlite3.connect(
            f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=0, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise translate(error, path) from error


def _make_private(path: Path) -> None:
    """Make an empty file that only its owner can read. SQLite gives its log the same mode."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # What is wrong with the place is for SQLite to say; and another process may have been faster.
    with suppress(OSError):
        try:
            # Not at the path itself: closing a database file drops the locks that this process has on it.
            os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            os.link(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)


def _never_set_up(path: Path) -> Misconfigured:
    return Misconfigured(
        "The store was never set up", fix="Run `cynosure store init`, or name another file.", path=str(path)
    )


def _identify(connection: sqlite3.Connection, path: Path, busy_timeout_s: float) -> int | None:
    """The format version of a store of ours, `None` for an empty file."""

    def look() -> tuple[int, int, int]:
        # One read transaction, or a set-up that commits in between shows half of itself.
        connection.execute("BEGIN")
        try:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        finally:
            roll_back(connection)
        return application_id, version, tables

    application_id, version, tables = retry_while_busy(look, busy_timeout_s)
    if application_id == APPLICATION_ID:
        if version > FORMAT_VERSION:
            raise NewerFormat(
                "A newer version of Cynosure laid out this database file",
                fix="Use that version, or name another file.",
                path=str(path),
                format_version=version,
                known_version=FORMAT_VERSION,
            )
        return int(version)
    if application_id or version or tables:
        raise Misconfigured(
            "The file is the SQLite database of another program",
            fix="Name another file; this one was not touched.",
            path=str(path),
        )
    return None


def _use_log(connection: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    def switch() -> str:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        return str(mode)

    if retry_while_busy(switch, busy_timeout_s) != "wal":
        raise Misconfigured(
            "The file system of the database file cannot hold a write-ahead log",
            fix="Put the file on a local disk.",
            path=str(path),
        )


def _lay_out(connection: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    begin_write(connection, busy_timeout_s)
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            for statement in _LAYOUT:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        roll_back(connection)
        raise
    if tables:
        # Another process was first: it must have made the same.
        _identify(connection, path, busy_timeout_s)
