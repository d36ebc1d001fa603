"""The gate of the operator socket: whoever may open it may do all.

Must not break: only ever put in front of a socket of mode 0600.
"""

from cynosure.api import asgi
from cynosure.api.asgi import Scope
from cynosure.api.realm import realm_of
from cynosure.auth.caller import Caller, operator_caller


class OperatorGate:
    """Lets in everybody, as an operator."""

    async def admit(self, scope: Scope) -> Caller:
        """See `Gate.admit`."""
        return operator_caller(realm=realm_of(scope), request_id=scope.get(asgi.REQUEST_ID, ""))

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        """See `Gate.refused`. An operator is refused nothing, so there is nothing to tell."""
