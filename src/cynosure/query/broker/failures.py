"""What a worker said went wrong, as an error of ours.

A maintainer must not break: a worker chooses among known kinds. Its text is bounded, and our own code put it
together from constants (`query.worker.failures`).
"""

from typing import Final

from cynosure.common.errors import CynosureError, Unavailable
from cynosure.query.errors import EngineUnavailable, NotReadable, OutOfMemory, QueryFailed, ScanBroken
from cynosure.query.stream.frames import Failed
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_KINDS: Final[dict[str, type[CynosureError]]] = {
    kind.__name__: kind
    for kind in (
        NotReadable,
        OutOfMemory,
        QueryFailed,
        ScanBroken,
        StorageRefused,
        StorageUnavailable,
        Unavailable,
        EngineUnavailable,
    )
}
_MAX_TEXT: Final = 500


def to_error(failed: Failed, *, fragment_id: str, attempts: int) -> CynosureError:
    """The error that the statement ends with."""
    kind = _KINDS.get(failed.kind, QueryFailed)
    return kind(
        failed.message[:_MAX_TEXT], fix=failed.fix[:_MAX_TEXT], fragment=fragment_id, attempts=attempts
    )


def read_too_often(*, fragment_id: str) -> EngineUnavailable:
    """More readers of one fragment than there can be."""
    return EngineUnavailable(
        "A part of a table is read in more places at once than Spark has cores for",
        fix="Try again. If it comes again, join on a condition rather than all rows with all.",
        fragment=fragment_id,
    )


def lost_again(*, fragment_id: str, attempts: int) -> EngineUnavailable:
    """Scans that did not say what happened to them."""
    return EngineUnavailable(
        "A scan was lost as often as it may be tried",
        fix="Look whether executors run out of memory or are killed; try again.",
        fragment=fragment_id,
        attempts=attempts,
    )
