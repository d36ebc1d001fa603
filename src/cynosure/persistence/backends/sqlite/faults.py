"""What an error of SQLite means: refused, unknown or damaged.

A maintainer must not break: only a COMMIT that failed in an unclear way is `OutcomeUnknown`. Before
COMMIT nothing is applied, because the transaction is rolled back.
"""

import sqlite3
from pathlib import Path

from cynosure.common.errors import CynosureError, Damaged, OutcomeUnknown, Unavailable

_REFUSALS = {
    sqlite3.SQLITE_BUSY: (
        "Another process keeps the database file locked",
        "Find the process that keeps a transaction open on the file and end it.",
    ),
    sqlite3.SQLITE_LOCKED: (
        "Another process keeps the database file locked",
        "Find the process that keeps a transaction open on the file and end it.",
    ),
    sqlite3.SQLITE_FULL: (
        "The database file cannot grow: the disk is full or the file reached its allowed size",
        "Free space on the disk of the database file, or raise its max_bytes option.",
    ),
    sqlite3.SQLITE_READONLY: (
        "The database file is read-only",
        "Make the file and its directory writable for the user of this process.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "The database file cannot be opened",
        "Give the user of this process read and write access to the file and its directory.",
    ),
    sqlite3.SQLITE_IOERR: (
        "The disk of the database file reports an error",
        "Look into the system log; check the disk before you write on.",
    ),
    sqlite3.SQLITE_NOMEM: ("There is no memory left for the database", "Give this process more memory."),
}
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT: "The database file is damaged",
    sqlite3.SQLITE_NOTADB: "The file is not a SQLite database, or its beginning is damaged",
}
# Of a COMMIT in WAL mode: the last frame was not written, or the lock was never had. Anything else may
# leave a complete transaction in the log, which the next recovery applies.
_REFUSED_COMMITS = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY})


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection's lock is the cause."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def is_refused_commit(error: sqlite3.Error) -> bool:
    """Whether a COMMIT that raised this is known to have applied nothing."""
    return _primary_code(error) in _REFUSED_COMMITS


def translate(error: sqlite3.Error, path: Path) -> CynosureError:
    """An error before COMMIT: nothing was applied."""
    code = _primary_code(error)
    if code in _DAMAGE:
        return Damaged(
            _DAMAGE[code],
            fix="Stop all processes on it and restore the file from a backup, or name another file.",
            path=str(path),
            sqlite_error=_name(error),
        )
    message, fix = _REFUSALS.get(code, ("The database refused the request", ""))
    return Unavailable(message, fix=fix, path=str(path), sqlite_error=_name(error))


def translate_commit(error: sqlite3.Error, path: Path) -> CynosureError:
    """An error of COMMIT itself."""
    if is_refused_commit(error):
        return translate(error, path)
    return OutcomeUnknown(
        "The database failed while it committed",
        fix=_REFUSALS[sqlite3.SQLITE_IOERR][1],
        path=str(path),
        sqlite_error=_name(error),
    )


def moved_while_committing(path: Path) -> OutcomeUnknown:
    """The error for a COMMIT into a file that was deleted or replaced before it was acknowledged."""
    return OutcomeUnknown(
        "The database file was deleted or replaced while it was written",
        fix="Put the file back, or restart every process that uses it; then look what was committed.",
        path=str(path),
    )


def _primary_code(error: sqlite3.Error) -> int:
    # Extended codes keep the primary one in their lowest byte. Errors of the Python module have none.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)
