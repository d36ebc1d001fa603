"""What every storage does besides, whatever it is: one decorator of `FileIO` each.

- `throttled.py`   so many operations at once, the others wait
- `metered.py`     counts operations, bytes, seconds and failures
- `audited.py`     a line in the log for every file written or deleted
- `confined.py`    some places only, for work on one table; put on by whoever does that

`decorate` puts them on in this order, from the inside out: times that are counted hold the wait for a turn,
as whoever waits feels it, and what is logged is what the caller was told.

A maintainer must not break: each of them is a `FileIO` that keeps every promise of the one inside it; all
pass `cynosure.testing.fileio_kit`.
"""

from cynosure.common.clock import Clock
from cynosure.storage.decorators.audited import AuditedFileIO
from cynosure.storage.decorators.metered import MeteredFileIO
from cynosure.storage.decorators.throttled import ThrottledFileIO
from cynosure.storage.fileio import FileIO
from cynosure.storage.settings import StorageSettings

__all__ = ["AuditedFileIO", "MeteredFileIO", "ThrottledFileIO", "decorate"]


def decorate(files: FileIO, kind: str, settings: StorageSettings, clock: Clock) -> FileIO:
    """Files of a storage of this kind, with all that the settings want around them."""
    wait_s = settings.operation_timeout.total_seconds()
    decorated: FileIO = ThrottledFileIO(files, most=settings.max_concurrent, wait_s=wait_s)
    decorated = MeteredFileIO(decorated, kind, clock)
    return AuditedFileIO(decorated) if settings.log_files else decorated
