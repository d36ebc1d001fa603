"""What a scan asks whoever runs it."""

from typing import Protocol

from msgspec import Struct

from cynosure.query.scan_task import Credentials


class ScanProgress(Struct, frozen=True):
    """How far a scan is."""

    files: int = 0
    """Finished."""
    rows: int = 0
    """Given."""
    bytes: int = 0
    """Read, as far as that is known."""


class ScanWatch(Protocol):
    """Of one scan. Called from the thread that scans."""

    def credentials(self) -> Credentials:
        """The newest. Asked before every file; a scan never uses older ones than it has seen."""
        ...

    def advance(self, progress: ScanProgress) -> None:
        """How far it is. `QueryCancelled` when nobody wants it any more.

        Called once per batch, row group, part of a delete file and file at least, whether rows pass or not;
        and while a scan waits for memory.
        """
        ...


class Unwatched:
    """A scan with the credentials it came with, which nobody stops."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def credentials(self) -> Credentials:
        """See `ScanWatch`."""
        return self._credentials

    def advance(self, progress: ScanProgress) -> None:
        """See `ScanWatch`."""
