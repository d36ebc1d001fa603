"""Errors of the delegation service, in the shape that the proposal gives them.

A maintainer must not break: status and text come from the one map of `cynosure.api.errors`, so that nothing
of our insides is told here that is not told there.
"""

from typing import Final

from cynosure.api.delegation.wire import ErrorResponse
from cynosure.api.errors import get_answer, to_response
from cynosure.api.messages import Response
from cynosure.common.errors import BadInput, Conflict, CynosureError, Forbidden, NotFound, TooLarge

NO_SUCH_TASK: Final = "TASK_NOT_FOUND"
_CODES: Final = {
    400: "INVALID_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    410: "EXPIRED",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    500: "INTERNAL_ERROR",
    502: "BAD_GATEWAY",
    503: "UNAVAILABLE",
    504: "OUTCOME_UNKNOWN",
}
_TOLD: Final = (BadInput, TooLarge, Conflict, Forbidden, NotFound)


class NoSuchTask(NotFound):
    """The service is certain not to have this task."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            "There is no such task",
            fix="Submit it; the same correlation id gives the same id.",
            task_id=task_id[:100],
        )


class WrongRealm(Forbidden):
    """An order for a realm that this service does not work for."""


class WrongClient(Forbidden):
    """A certificate of the right authority, of somebody who may not give orders."""


class NoScope(Forbidden):
    """A good token that does not allow to give orders."""


_CODES_BY_TYPE: Final[dict[type[CynosureError], str]] = {
    NoSuchTask: NO_SUCH_TASK,
    WrongRealm: "WRONG_REALM",
    WrongClient: "WRONG_CLIENT",
    NoScope: "INSUFFICIENT_SCOPE",
}


def respond(error: Exception, request_id: str) -> Response:
    """The answer to an error, as `cynosure.api.errors.to_response` gives it, in the proposal's shape."""
    answer = get_answer(type(error))
    theirs = to_response(error, request_id)
    if isinstance(error, CynosureError):
        message = f"{error.message}. {error.fix}" if error.fix else error.message
        code = _CODES_BY_TYPE.get(type(error), _CODES.get(answer.status, "INTERNAL_ERROR"))
    else:
        message, code = "The service failed in an unexpected way", _CODES[500]
    body = ErrorResponse(
        error_code=code,
        message=message,
        details=_details(error) if isinstance(error, _TOLD) else f"request {request_id}",
    )
    headers = [each for each in theirs.headers if each[0] != b"content-type"]
    return Response.json(body, status=answer.status, headers=headers)


def _details(error: CynosureError) -> str | None:
    return ", ".join(f"{name}={value!r}" for name, value in error.details.items()) or None
