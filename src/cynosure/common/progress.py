"""What a long command tells while it runs, in this process or through `operator.sock`.

A maintainer must not break: these structs are the lines on the operator socket, read by a command
line of another version; fields are only ever added, with defaults.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from cynosure.common.errors import CynosureError


class Progress(Struct, frozen=True, tag_field="event", tag="progress"):
    """How far a command is. Advisory: any of them may be dropped when the reader is slow."""

    message: str
    done: int | None = None
    total: int | None = None


class Done(Struct, frozen=True, tag_field="event", tag="done"):
    """The command's result, and the last line."""

    value: msgspec.Raw


class Failed(Struct, frozen=True, tag_field="event", tag="failed"):
    """The command's error, and the last line. Operators are trusted: details are told."""

    error: str
    """Name of the type in our error tree, or of the exception."""
    message: str
    fix: str = ""
    details: dict[str, Any] = {}


Event: TypeAlias = Progress | Done | Failed
Report: TypeAlias = Callable[[Progress], None]
"""Where a command sends its progress. Never blocks."""


def ignore_progress(progress: Progress) -> None:
    """A `Report` for callers who only want the result."""


def to_failed(error: Exception) -> Failed:
    """The line that tells this error."""
    if not isinstance(error, CynosureError):
        return Failed(type(error).__name__, "The command failed in an unexpected way")
    details = {name: msgspec.to_builtins(value, enc_hook=str) for name, value in error.details.items()}
    return Failed(type(error).__name__, error.message, error.fix, details)
