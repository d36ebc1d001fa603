"""The data directory: made private, and held by one process per role.

A maintainer must not break: the lock is the kernel's (flock), not the file's existence, so a process
that was killed leaves nothing to clean up.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from cynosure.common.errors import Misconfigured


def prepare_data_dir(path: Path) -> None:
    """Make the directory, with mode 0700, when it is missing. It may hold other files."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Misconfigured(
            "The data directory cannot be made",
            fix="Choose another one with --data, or make it and give it to this user.",
            path=str(path),
            reason=error.strerror or str(error),
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise Misconfigured(
            "The data directory is not writable",
            fix="Give it to the user that runs the server, or choose another one with --data.",
            path=str(path),
        )


class RoleLock:
    """The right to be the one process of a role (`up`, `catalog`) on a data directory."""

    def __init__(self, data_dir: Path, role: str) -> None:
        self._path = data_dir / f"{role}.lock"
        self._role = role
        self._fd: int | None = None

    def find_holder(self) -> int | None:
        """Process id of the holder; `None` when the lock is free. 0 when it is held but not yet signed."""
        if self.try_acquire():
            self.release()
            return None
        return self._read_pid()

    def acquire(self) -> None:
        """Take the lock, or refuse and name its holder."""
        if not self.try_acquire():
            raise Misconfigured(
                "Another process already works on this data directory",
                fix="Stop that process, or choose another directory with --data.",
                pid=self._read_pid(),
                role=self._role,
                data_dir=str(self._path.parent),
            )

    def try_acquire(self) -> bool:
        """Take the lock if it is free; whether it was."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._fd = fd
        return True

    def release(self) -> None:
        """Give the lock back. The file stays: removing it would let two processes lock two files."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        """Hold the lock inside the block."""
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the lock back."""
        self.release()

    def _read_pid(self) -> int:
        text = self._path.read_text("ascii").strip()
        return int(text) if text.isdigit() else 0
