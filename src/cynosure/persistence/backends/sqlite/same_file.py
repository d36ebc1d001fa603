"""Whether the path still leads to the file that this process uses.

A connection stays on its file when that is deleted or replaced, reads the past from it for ever, and, with
a write-ahead log, even acknowledges commits into it that nobody will see again.

A maintainer must not break: the file is the same for the life of a backend, whichever connection is opened
first or anew. What the process remembers is of that file, so another one needs another process.
"""

import threading
from pathlib import Path

from cynosure.common.errors import Unavailable


class SameFile:
    """The file that a backend began with. Used by all of its threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Order: before a connection is opened, so that a file replaced in between is refused, not missed."""
        with self._lock:
            if self._identity is None:
                self._identity = self._look()
        self.check()

    def check(self) -> None:
        """Refuse to go on with another file, or with none."""
        if self.is_moved():
            raise Unavailable(
                "The database file was deleted or replaced while it was in use",
                fix="Put the file back, or restart every process that uses it.",
                path=str(self._path),
            )

    def is_moved(self) -> bool:
        """Whether the path leads elsewhere by now."""
        return self._identity is not None and self._look() != self._identity

    def _look(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(
                "The database file cannot be looked at",
                fix="Look into the system log; check the disk and the access to the directory.",
                path=str(self._path),
                reason=error.strerror or str(error),
            ) from error
        return found.st_dev, found.st_ino
