"""Events as lines of JSON in a file.

The file may be moved away at any time, which is how it is rotated: before each write its name is looked at,
and when another file or none has it, a new one is begun.

Must not break: a batch is on the disk before it counts as taken; a line that a crash left half written is
ended first.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from cynosure.auth.audit.events import Event
from cynosure.common.errors import Unavailable


class FileSink:
    """Appends to one file. At most one process may do so at a time."""

    name = "file"
    most_events = 1_000

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    async def deliver(self, events: Sequence[Event]) -> None:
        """See `Sink.deliver`."""
        lines = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        try:
            await asyncio.to_thread(self._append, lines)
        except OSError as error:
            self._abandon()
            raise Unavailable(
                "The file for audit events cannot be written",
                fix="Check auth.audit.file: its directory, its owner, and the room that is left.",
                path=str(self._path),
                reason=error.strerror or type(error).__name__,
            ) from error

    async def close(self) -> None:
        """See `Sink.close`."""
        self._abandon()

    def _append(self, lines: bytes) -> None:
        file = self._reopened()
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())

    def _reopened(self) -> BinaryIO:
        if self._file is not None and not self._is_current(self._file):
            self._abandon()
        if self._file is None:
            # Append mode: others who write to it, against the rules, are at least not written over.
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            file = self._file = os.fdopen(descriptor, "ab+")
            if file.seek(0, os.SEEK_END) > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
        return self._file

    def _is_current(self, file: BinaryIO) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(file.fileno()))

    def _abandon(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                # What could not be written is told again; the descriptor is closed all the same.
                return
