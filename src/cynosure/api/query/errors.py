"""Errors of the query API: the shape of our other APIs, and beside it what varies, by name.

A maintainer must not break: what varies (a line, a column, a name that the user wrote) is told only for
refusals (below 500); status and type come from the one map of `cynosure.api.errors`.
"""

from typing import Any

from msgspec import Struct, field

from cynosure.api.errors import Answer, get_answer, to_response
from cynosure.api.messages import Response
from cynosure.common.errors import CynosureError

FAILED_STATUS = 422


class QueryErrorModel(Struct, frozen=True, omit_defaults=True):
    """What went wrong, and what to do."""

    message: str
    type: str
    code: int
    fix: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    """By name: `field`; of a statement `line` and `column`, `condition` (the engine's name of the
    failure)."""


class QueryErrorEnvelope(Struct, frozen=True):
    """The body of every answer with a status of 400 or above."""

    error: QueryErrorModel


def model_of(error: CynosureError, answer: Answer | None = None) -> QueryErrorModel:
    """An error as clients see it."""
    answer = answer or get_answer(type(error))
    details = dict(error.details) if answer.status < 500 else {}
    return QueryErrorModel(error.message, answer.type, answer.status, error.fix, _plain(details))


def respond(error: Exception, request_id: str) -> Response:
    """The answer to an error: status and headers as everywhere, and the parts of the message apart."""
    theirs = to_response(error, request_id)
    if not isinstance(error, CynosureError):
        return theirs
    model = model_of(error)
    if model.code >= 500 and request_id:
        model = QueryErrorModel(model.message, model.type, model.code, model.fix, {"request": request_id})
    headers = [each for each in theirs.headers if each[0] != b"content-type"]
    return Response.json(QueryErrorEnvelope(model), status=theirs.status, headers=headers)


def failed_statement(error: CynosureError) -> Response:
    """The answer to who fetches results of a statement that failed.

    Never one that invites to ask again: it has failed, for whatever reason, and stays so.
    """
    answer = get_answer(type(error))
    if answer.status >= 429:
        answer = Answer(FAILED_STATUS, answer.type)
    return Response.json(QueryErrorEnvelope(model_of(error, answer)), status=answer.status)


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in details.items()
    }
