"""What a remote's answer means for a caller of ours.

A maintainer must not break: none of the remote's own words reach a caller; a 404 is believed only in the
words of the protocol, because what a proxy or a warehouse that is switched off answers must not look like a
table that was dropped: its grants would be dropped with it; and a change that may have been carried out is
`OutcomeUnknown`, whatever else is wrong with its answer. That of a 503, too, unless it is in the words of the
protocol: proxies (Envoy) answer so also when the server behind them was cut off.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.common.errors import BadInput, CynosureError, OutcomeUnknown
from cynosure.federation.errors import (
    InCircle,
    NotOffered,
    RemoteFileMissing,
    RemoteMisbehaved,
    RemoteRefused,
    RemoteUnavailable,
)
from cynosure.federation.remotes.failures import NO_CATALOG, NOT_ALLOWED, NOT_LET_IN
from cynosure.federation.remotes.transport import Answered, Lost, Unusable

_REFUSED: Final = frozenset({401, 403, 405, 406, 407, 419, 501})
_NOT_LET_IN: Final = frozenset({401, 407, 419})
_NOT_DONE: Final = frozenset({405, 406, 501})
"""Of a change: the remote does no such thing. The protocol has 406 for it."""
_BUSY: Final = frozenset({429, 503})
_CONFLICTS: Final = frozenset({409, 412})
_LOOP_DETECTED: Final = 508
_IN_CIRCLE: Final = "LoopDetectedException"
"""Of a server of this kind, or of one behind it."""
_NOT_EMPTY: Final = "NamespaceNotEmptyException"
"""Older servers answer it with 400."""
_IN_PROGRESS: Final = "request_in_progress"
_NO_CATALOG: Final = frozenset({"NoSuchWarehouseException", "NoSuchCatalogException"})
NAMESPACES: Final = frozenset({"NoSuchNamespaceException"})
MISSING: Final = NAMESPACES | {
    "NoSuchTableException",
    "NoSuchIcebergTableException",
    "NoSuchViewException",
    "NoSuchIcebergViewException",
    # Of a file. Some servers say so of a whole warehouse, too.
    "NotFoundException",
}
"""Types by which the protocol, or its Java implementation, says what is missing."""


def _no_conflict() -> CynosureError | None:
    return None


class Asked(Struct, frozen=True):
    """What a request was about, so that a status means something."""

    missing: Callable[[str], CynosureError]
    """404, by the type that the remote gave it."""
    conflict: Callable[[], CynosureError | None] = _no_conflict
    """409; `None` where none can be."""
    is_change: bool = False
    is_callers: bool = True
    """Whether what is asked came from a caller: names, tokens. Not so for what we ask for ourselves."""
    known_file: str | None = None
    """The metadata file of what is asked for, as it was last seen."""
    believed: frozenset[str] | None = MISSING
    """By which types a 404 is about what was asked for; `None`: by all."""


class _ErrorModel(Struct):
    type: str = ""
    message: str = ""
    code: int = 0


class _ErrorBody(Struct):
    error: _ErrorModel


def to_error(answer: Answered | Lost | Unusable, asked: Asked, catalog: str) -> CynosureError:
    """The error for whatever is not an answer that was hoped for."""
    if isinstance(answer, Lost):
        if answer.has_left and asked.is_change:
            return unknown(catalog, answer.reason)
        return RemoteUnavailable(catalog, reason=answer.reason)
    if isinstance(answer, Unusable):
        # The status came before what is wrong with the rest.
        is_open = asked.is_change and (answer.status < 300 or answer.status >= 500)
        if is_open:
            return unknown(catalog, answer.problem, status=answer.status)
        return misbehaved(catalog, answer.problem)
    return InCircle(catalog) if _is_in_circle(answer) else _by_status(answer, asked, catalog)


def _is_in_circle(answer: Answered) -> bool:
    if answer.status != _LOOP_DETECTED:
        return False
    told = _read_error(answer.body)
    return told is not None and told.type == _IN_CIRCLE


def _by_status(answer: Answered, asked: Asked, catalog: str) -> CynosureError:
    status = answer.status
    told = _read_error(answer.body)
    if status in _BUSY and (status == 429 or told is not None or not asked.is_change):
        return RemoteUnavailable(catalog, reason=f"status {status}", status=status)
    if status in _REFUSED:
        return _to_refusal(status, asked, catalog)
    if status >= 500:
        reason = f"status {status}"
        if asked.is_change:
            return unknown(catalog, reason, status=status)
        return RemoteUnavailable(catalog, reason=reason, status=status)
    if status == 404 and told is not None:
        return _to_missing(told, asked, catalog)
    if status in _CONFLICTS or (told is not None and told.type == _NOT_EMPTY):
        if told is not None and told.type == _IN_PROGRESS:
            return unknown(catalog, "an earlier attempt is still under way", status=status)
        if (conflict := asked.conflict()) is not None:
            return conflict
    if (status in (400, 413, 422) and asked.is_change) or (status == 400 and asked.is_callers):
        # Of a question: a name that it cannot have, which is no failure that passes when it is asked again.
        return BadInput(
            "The remote catalog does not accept the request",
            field="body" if asked.is_change else "name",
            fix="Send what the catalog behind this one can do; its administrator can see why in its log.",
            catalog=catalog,
            status=status,
        )
    return misbehaved(catalog, f"status {status}")


def _to_missing(told: _ErrorModel, asked: Asked, catalog: str) -> CynosureError:
    if told.type in _NO_CATALOG:
        return RemoteRefused(catalog, status=404, reason=NO_CATALOG)
    if asked.believed is not None and told.type not in asked.believed:
        return misbehaved(catalog, "a 404 that does not say what is missing")
    error = asked.missing(told.type)
    # Its words are compared, and not told: what is named is what is known here.
    if isinstance(error, RemoteFileMissing) and asked.known_file and asked.known_file in told.message:
        error.location = asked.known_file
    return error


def _to_refusal(status: int, asked: Asked, catalog: str) -> CynosureError:
    if status in _NOT_DONE and asked.is_change:
        return NotOffered(
            catalog, operation=f"status {status}", fix="Change it where it is owned, or in another way."
        )
    reason = NOT_LET_IN if status in _NOT_LET_IN else NOT_ALLOWED
    return RemoteRefused(catalog, status=status, reason=reason)


def unknown(catalog: str, reason: str, *, status: int | None = None) -> OutcomeUnknown:
    """A change that may have been carried out."""
    told = {} if status is None else {"status": status}
    return OutcomeUnknown(
        "The remote catalog may or may not have applied the change",
        fix="Look at the current state before sending it again.",
        catalog=catalog,
        reason=reason,
        **told,
    )


def misbehaved(catalog: str, problem: str) -> RemoteMisbehaved:
    """An answer that cannot be believed."""
    return RemoteMisbehaved(catalog, problem=problem)


def _read_error(body: bytes) -> _ErrorModel | None:
    try:
        return msgspec.json.decode(body, type=_ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
