"""Small reads on the event loop's own thread, and references that are asked for again and again.

SQLite tells a connection in one cheap step whether anyone, in any process, committed since it last looked
(`PRAGMA data_version`, by its documentation; two thirds of the cost of a lookup). While nobody did, a
reference is what it was.

A maintainer must not break:
- the version is read before the reference: what is then remembered can only be newer than its version says;
- every statement is a transaction of its own and taken to its end, so no answer is of the past, and no
  snapshot keeps the log from being moved into the file;
- nothing here waits. A lock (another process recovers the log after a crash) is `SQLITE_BUSY`, and the
  caller asks on a thread.
"""

import sqlite3
import time
from collections.abc import Sequence
from typing import Final

from cynosure.persistence import row_rules
from cynosure.persistence.backends.sqlite import statements
from cynosure.persistence.backends.sqlite.same_file import SameFile
from cynosure.persistence.spi import Reference, RefKey

FILE_CHECK_S: Final = 1.0
"""How often reads look whether the path still leads to the file they read. Writes always do."""
_MOST_KNOWN: Final = 4096


class LoopReader:
    """A connection that is opened on any thread and used on the loop's. Raises what SQLite raises."""

    def __init__(
        self, connection: sqlite3.Connection, same_file: SameFile, file_check_s: float = FILE_CHECK_S
    ) -> None:
        self.connection = connection
        self._same_file = same_file
        self._file_check_s = file_check_s
        self._check_file_at_s = 0.0
        self._version: tuple[int] | None = None
        self._known: dict[RefKey, Reference | None] = {}

    def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        """References as the file has them at this moment."""
        version: tuple[int] = self.connection.execute("PRAGMA data_version").fetchall()[0]
        known = self._known
        if version != self._version or len(known) > _MOST_KNOWN:
            known.clear()
            self._version = version
        try:
            return [known[key] for key in keys]
        except KeyError:
            row_rules.check_ref_keys(keys)
            found = statements.fetch_refs(self.connection, keys)
            known.update(zip(keys, found, strict=True))
            return found

    def check_file(self) -> None:
        """Refuse to read from a file that is not the store's any more."""
        now_s = time.monotonic()
        if now_s >= self._check_file_at_s:
            self._same_file.check()
            self._check_file_at_s = now_s + self._file_check_s

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
