"""What is said of a failure: to the broker, and to Spark.

A maintainer must not break: of an error that is not ours only its type is told, never its text: that could
hold a value of a row, a path or a credential. Spark is told a kind and a fragment, and nothing else.
"""

from typing import Final

from cynosure.common.errors import CynosureError, Unavailable
from cynosure.query.errors import EngineUnavailable, NotReadable, OutOfMemory, QueryCancelled, ScanBroken
from cynosure.query.stream.frames import Failed
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_TOLD: Final = (NotReadable, OutOfMemory, StorageRefused, StorageUnavailable, Unavailable)
"""Whose constant text is for users. Details are not told: they may hold a path."""
_WORTH_RETRYING: Final = (OutOfMemory, StorageRefused, Unavailable)
"""Another worker may have more memory free. Refusals too: credentials may have ended in the middle, and the
next attempt gets the newest."""


def describe(error: Exception) -> Failed:
    """As the broker is told."""
    if isinstance(error, MemoryError):
        return Failed(OutOfMemory.__name__, "A scan needs more memory than it may have")
    if not isinstance(error, _TOLD):
        return Failed(
            ScanBroken.__name__,
            "A scan failed in a way that is not expected",
            f"Report it, with this: {type(error).__name__}.",
        )
    # The nearest type that the broker knows; subclasses of it are not told apart there.
    kind = next(each for each in type(error).__mro__ if each in _TOLD)
    return Failed(kind.__name__, error.message, error.fix, isinstance(error, _WORTH_RETRYING))


def for_spark(kind: str, fragment_id: str) -> CynosureError:
    """As Spark is told: it writes this into logs and event files."""
    if kind == QueryCancelled.__name__:
        return QueryCancelled("A scan was stopped", fragment=fragment_id)
    return EngineUnavailable("A scan failed", kind=kind, fragment=fragment_id)
