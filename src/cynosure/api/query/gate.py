"""Who sends a statement: the catalog is asked with their token, and answers for whom the gateway acts.

A maintainer must not break: the gateway itself believes no token. Without an answer of the catalog there is
no session, and without a session no route but the public ones.
"""

from typing import Any, Final, Protocol, cast

from cynosure.api import asgi
from cynosure.api.asgi import Scope
from cynosure.api.messages import Request
from cynosure.api.realm import realm_of
from cynosure.api.token_gate import bearer_token
from cynosure.auth.caller import Caller
from cynosure.common.errors import NotAuthenticated
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.common.telemetry.request_scope import RequestScope, enter_scope
from cynosure.query.catalog_access.port import CatalogSession

_SESSION: Final = "cynosure.query_session"

_log = Log(__name__)


class CatalogSessions(Protocol):
    """Where sessions come from; `cynosure.query.catalog_access.http` has them."""

    async def open(self, realm: str | None, token: str) -> CatalogSession:
        """The catalog on behalf of who has this token. `NotAuthenticated` when the catalog refuses it."""
        ...


class QueryGate:
    """Lets in whom the catalog knows."""

    def __init__(self, sessions: CatalogSessions) -> None:
        self._sessions = sessions

    async def admit(self, scope: Scope) -> Caller:
        """See `Gate.admit`."""
        realm = realm_of(scope)
        token = bearer_token(scope)
        if not token:
            raise NotAuthenticated(
                "The request has no bearer token",
                fix="Get one from the catalog, and send it as Authorization: Bearer TOKEN.",
            )
        session = scope[_SESSION] = await self._sessions.open(realm, token)
        request_id: str = scope.get(asgi.REQUEST_ID, "")
        # It ends with the scope that the telemetry middleware began.
        enter_scope(RequestScope(request_id, realm, session.user))
        return Caller(session.user, realm, request_id)

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        """See `Gate.refused`. The catalog keeps the record of what it refuses; here the log has it."""
        client = scope.get("client")
        _log.event(
            "gateway.refused",
            level=WARNING,
            error=error,
            operation=scope.get(asgi.OPERATION, ""),
            client=client[0] if client else "",
        )


def session_of(request: Request) -> CatalogSession:
    """The session of who sent a request."""
    return cast("CatalogSession", cast("dict[str, Any]", request.scope)[_SESSION])
