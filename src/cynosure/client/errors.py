"""Error envelopes and failed commands back into our error tree.

A maintainer must not break: for a request that may have changed something, every answer that does
not say what happened (500, 502, 504) is `OutcomeUnknown`.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.common import errors as tree
from cynosure.common.progress import Failed


class RequestRefused(tree.CynosureError):
    """A server refused with a status that has no other place in our tree."""


class ServerFailed(tree.CynosureError):
    """A server failed on a request that changes nothing."""


class KeyConflict(tree.KeyReused):
    """The server knows this Idempotency-Key from a request that asked for something else."""

    def __init__(self, message: str, *, fix: str = "", **details: Any) -> None:
        tree.CynosureError.__init__(self, message, fix=fix, **details)


class StillInProgress(tree.OutcomeUnknown):
    """Another attempt with the same Idempotency-Key has not ended yet."""


class IdempotencyWindowExpired(tree.OutcomeUnknown):
    """No answer came for as long as the server promises to know the Idempotency-Key.

    The request may or may not have been applied, and repeating it now might apply it twice.
    """


class _Error(Struct):
    message: str = ""
    type: str = ""
    fix: str = ""
    """Apart from the message, as gateways send it; others have it behind the message."""
    details: dict[str, Any] = {}


class _Envelope(Struct):
    error: _Error | str
    """Text in answers of OAuth (RFC 6749, section 5.2)."""
    error_description: str = ""


class _Coded(Struct):
    """The shape of a delegation service."""

    error_code: str
    message: str = ""


_BY_TYPE: Final[dict[str, type[tree.CynosureError]]] = {
    "AlreadyExistsException": tree.AlreadyExists,
    "BadRequestException": tree.BadInput,
    "CommitFailedException": tree.Conflict,
    "CommitStateUnknownException": tree.OutcomeUnknown,
    "ExpiredException": tree.Expired,
    "PayloadTooLargeException": tree.TooLarge,
    "RequestTimeoutException": tree.Unavailable,
    "ServiceUnavailableException": tree.Unavailable,
    "SlowDownException": tree.Unavailable,
    "idempotency_key_conflict": KeyConflict,
    "request_in_progress": StillInProgress,
}
_BY_STATUS: Final[dict[int, type[tree.CynosureError]]] = {
    400: tree.BadInput,
    401: tree.NotAuthenticated,
    403: tree.Forbidden,
    404: tree.NotFound,
    408: tree.Unavailable,
    409: tree.Conflict,
    410: tree.Expired,
    413: tree.TooLarge,
    429: tree.Unavailable,
    503: tree.Unavailable,
}
_NOT_DETAILS: Final = frozenset({"self", "message", "fix"})
_FIELD: Final = re.compile(r"\bfield='([^']*)'")
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_coded = msgspec.json.Decoder(_Coded).decode


def to_error(
    status: int, body: bytes, *, is_read: bool, request_id: str, is_replayed: bool = False
) -> tree.CynosureError:
    """The error that an answer with a status of 400 or above stands for."""
    told = _read_envelope(body)
    message, type_name = told.message, told.type
    found = _BY_TYPE.get(type_name) or _BY_STATUS.get(status)
    if found is None and status >= 500:
        found = ServerFailed if is_read else tree.OutcomeUnknown
    elif found is None:
        found = RequestRefused
    text, fix = (message, told.fix) if told.fix else _split(message.rstrip("."))
    details: dict[str, Any] = {
        "status": status,
        "type": type_name,
        "request_id": request_id,
        "is_replayed": is_replayed,
    }
    given = {name: value for name, value in told.details.items() if name not in _NOT_DETAILS}
    details = {**given, **{name: value for name, value in details.items() if value}}
    if (named := _FIELD.search(text)) is not None:
        details["field"] = named[1]
    return _make(found, text or f"The server answered {status} without saying why", fix, details)


def from_failed(failed: Failed) -> tree.CynosureError:
    """The error that a command on the other side of the operator socket failed with."""
    by_name = {error_type.__name__: error_type for error_type in _walk(tree.CynosureError)}
    found = by_name.get(failed.error)
    if found is None:
        return ServerFailed(
            failed.message,
            fix=failed.fix or "Look for the reason in the server's log.",
            error=failed.error,
            **failed.details,
        )
    return _make(found, failed.message, failed.fix, dict(failed.details))


def _make(
    error_type: type[tree.CynosureError], message: str, fix: str, details: dict[str, Any]
) -> tree.CynosureError:
    if issubclass(error_type, tree.BadInput):
        return error_type(message, field=str(details.pop("field", "request")), fix=fix, **details)
    try:
        return error_type(message, fix=fix, **details)
    except TypeError:
        # A type with a constructor of its own; its nearest ordinary ancestor carries the same meaning.
        ancestor = next(each for each in error_type.__mro__[1:] if issubclass(each, tree.CynosureError))
        return _make(ancestor, message, fix, details)


def _split(text: str) -> tuple[str, str]:
    """What went wrong, and the fix that our servers put behind it."""
    head, bracket, fix = text.partition("). ")
    if bracket:
        return f"{head})", f"{fix}."
    head, stop, fix = text.partition(". ")
    return head, f"{fix}." if stop else ""


def _read_envelope(body: bytes) -> _Error:
    try:
        envelope = _decode_envelope(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_coded(body)
    if isinstance(envelope.error, str):
        return _Error(envelope.error_description, envelope.error)
    return envelope.error


def _read_coded(body: bytes) -> _Error:
    try:
        coded = _decode_coded(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A proxy's page, or nothing: its text is not ours to repeat.
        return _Error()
    return _Error(coded.message, coded.error_code)


def _walk(error_type: type[tree.CynosureError]) -> list[type[tree.CynosureError]]:
    return [error_type, *(found for child in error_type.__subclasses__() for found in _walk(child))]
