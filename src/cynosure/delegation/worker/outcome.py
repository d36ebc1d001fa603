"""What an error means for a task: tried again or given up, under which code, and what is kept of it.

Must not break: what is kept never holds a credential. Errors of our tree are safe to log, so they are safe to
keep; of any other error only its type and the places in the code are.
"""

import re
import traceback
from pathlib import PurePath
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.common.delegated.record import ExecutionResult, TaskDetails
from cynosure.common.errors import (
    BadInput,
    Conflict,
    CynosureError,
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.common.quantities import format_bytes
from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from cynosure.storage.errors import StorageRefused, StorageUnavailable

CREDENTIAL_VENDING_FAILED: Final = "CREDENTIAL_VENDING_FAILED"
UNEXPECTED: Final = "UNEXPECTED"
_MOST_CHARS: Final = 15_000
_MOST_ENTRIES: Final = 20
_VALUE_CHARS: Final = 500
_FRAMES: Final = 30
_BAD_GATEWAY: Final = 502
_STATUSES: Final[tuple[tuple[type[CynosureError], int], ...]] = (
    (BadInput, 400),
    (NotFound, 409),
    (Conflict, 409),
    (NotAuthenticated, _BAD_GATEWAY),
    (Forbidden, _BAD_GATEWAY),
    (StorageRefused, _BAD_GATEWAY),
    (Unavailable, _BAD_GATEWAY),
    (OutcomeUnknown, _BAD_GATEWAY),
)
"""What a request that waits is answered with. Refusals by others are not refusals of the one who asks."""


class Trouble(Struct, frozen=True):
    """Why an attempt did not succeed."""

    code: str
    summary: str
    extended: str
    """A JSON document (`status_of`)."""
    is_passing: bool
    """Whether another attempt may succeed."""


class _Extended(Struct, frozen=True, omit_defaults=True):
    type: str
    status: int = 500
    fix: str = ""
    details: dict[str, str | list[str]] = {}
    at: list[str] = []
    """Places in the code, the innermost last; of errors that nobody expects."""


def judge(error: Exception, *, is_acquiring: bool) -> Trouble:
    """What an error means. `is_acquiring`: it came while the task still waited for what it needs."""
    if not isinstance(error, CynosureError):
        name = type(error).__name__
        at = [_place(frame) for frame in traceback.extract_tb(error.__traceback__)[-_FRAMES:]]
        # The next attempt may well succeed; and if not, their number is bounded.
        return Trouble(
            UNEXPECTED,
            f"An error that is not expected ({name}); the log of the service has all of it.",
            msgspec.json.encode(_Extended(name, at=at)).decode(),
            is_passing=True,
        )
    is_refused = isinstance(error, NotAuthenticated | Forbidden)
    # Credentials may have ended in the middle of a long run; the next attempt has new ones.
    is_late = isinstance(error, StorageRefused) and not is_acquiring
    code = _code_of(error, is_refused=is_refused, is_acquiring=is_acquiring)
    status = _BAD_GATEWAY if code == CREDENTIAL_VENDING_FAILED else _status_for(error)
    return Trouble(
        code,
        _clean(str(error)),
        _encode(_Extended(type(error).__name__, status, error.fix, _plain(error.details))),
        is_passing=is_late or isinstance(error, Unavailable | OutcomeUnknown | JobPostponed),
    )


def status_of(details: TaskDetails) -> int:
    """The HTTP status for a request that waited for a task which failed."""
    try:
        return msgspec.json.decode(details.result_extended or "", type=_Extended).status
    except msgspec.DecodeError:
        return 409 if details.error_code == "CANCELLED" else 500


def counted_by(error: Exception) -> dict[str, int | float | str | bool | list[str]]:
    """What a job that failed in the middle has counted (`result` among the details of its error)."""
    counted = error.details.get("result") if isinstance(error, JobFailed) else None
    if not isinstance(counted, dict):
        return {}
    try:
        return msgspec.convert(counted, dict[str, int | float | str | bool | list[str]])
    except msgspec.ValidationError:
        return {}


def summarize(result: ExecutionResult, elapsed_s: float) -> str:
    """One line about a task that succeeded."""
    what = f"Done in {elapsed_s:.1f} s."
    if result.files_deleted:
        what += f" {result.files_deleted:,} files deleted, {format_bytes(result.bytes_deleted)}."
    return what


def _code_of(error: CynosureError, *, is_refused: bool, is_acquiring: bool) -> str:
    if isinstance(error, JobFailed | JobPostponed):
        return error.code
    if is_refused or (is_acquiring and isinstance(error, StorageRefused)):
        return CREDENTIAL_VENDING_FAILED
    if is_acquiring and isinstance(error, Unavailable) and not isinstance(error, StorageUnavailable):
        return CREDENTIAL_VENDING_FAILED
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(error).__name__).upper()


def _status_for(error: CynosureError) -> int:
    if isinstance(error, JobFailed):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def _plain(details: dict[str, Any]) -> dict[str, str | list[str]]:
    plain: dict[str, str | list[str]] = {}
    for name, value in list(details.items())[:_MOST_ENTRIES]:
        if isinstance(value, list | tuple | set | frozenset):
            plain[name] = [_clean(str(each)[:_VALUE_CHARS]) for each in list(value)[:_MOST_ENTRIES]]
        else:
            plain[name] = _clean(str(value)[:_VALUE_CHARS])
    return plain


def _clean(text: str) -> str:
    """What every store can keep: names of files and texts of Java are not always text."""
    return text.encode(errors="replace").decode().replace("\0", "?")


def _encode(extended: _Extended) -> str:
    text = msgspec.json.encode(extended).decode()
    if len(text) > _MOST_CHARS:
        # Cut in the middle it would be no document any more.
        text = msgspec.json.encode(msgspec.structs.replace(extended, details={})).decode()
    return text


def _place(frame: traceback.FrameSummary) -> str:
    return f"{'/'.join(PurePath(frame.filename).parts[-3:])}:{frame.lineno} {frame.name}"
