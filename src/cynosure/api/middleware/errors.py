"""Exceptions into error envelopes, in one place.

A maintainer must not break: no exception's text reaches a client unless it is of our tree, and
cancellation passes.
"""

from cynosure.api import asgi
from cynosure.api.asgi import App, Receive, Scope, Send
from cynosure.api.errors import Respond, get_answer, to_response
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import ERROR, WARNING, Log

_log = Log(__name__)


class Errors:
    """Answers exceptions of the application inside, unless told otherwise as `cynosure.api.errors` does."""

    def __init__(self, app: App, respond: Respond = to_response) -> None:
        self._app = app
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application and answer what it raises."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            _report(error, scope.get(asgi.OPERATION, ""))
            if asgi.STATUS in scope:
                # Half an answer is out: only a cut connection tells the client that it is not whole.
                raise
            await self._respond(error, scope.get(asgi.REQUEST_ID, "")).send(scope, send)


def _report(error: Exception, operation: str) -> None:
    if not isinstance(error, CynosureError):
        _log.event("request.crashed", level=ERROR, error=error, with_traceback=True, operation=operation)
    elif get_answer(type(error)).status >= 500:
        _log.event("request.failed", level=WARNING, error=error, operation=operation)
