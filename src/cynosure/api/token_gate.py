"""The gate of the public port: a bearer token for every request.

Must not break: of several Authorization headers none counts, and no text of a token goes anywhere but to the
authenticator.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from cynosure.api import asgi
from cynosure.api.asgi import Scope
from cynosure.api.realm import realm_of
from cynosure.auth.audit.denials import Denials, denial_of
from cynosure.auth.caller import CAPABILITIES, Caller
from cynosure.auth.ports import Authenticator
from cynosure.common.telemetry.request_scope import RequestScope, enter_scope
from cynosure.persistence.heads import Heads
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import RealmId, RefKey

_SCHEME: Final = b"bearer "
_CAPABILITIES: Final = b"x-cynosure-capabilities"

Ahead = Callable[[Scope, RealmId], Iterable[RefKey]]
"""References whose heads a request will probably ask for."""


class TokenGate:
    """Lets in whom the authenticator knows."""

    def __init__(
        self,
        authenticator: Authenticator,
        denials: Denials,
        *,
        heads: Heads | None = None,
        ahead: Ahead | None = None,
    ) -> None:
        self._authenticate = authenticator.authenticate
        self._denials = denials
        self._heads = heads
        self._ahead = ahead

    async def admit(self, scope: Scope) -> Caller:
        """See `Gate.admit`."""
        realm = realm_of(scope)
        if self._heads is not None:
            further = self._ahead(scope, realm) if self._ahead is not None else ()
            principals = realm_reference(realm, "principals")
            # Twice: asked for who it is, and for what they may.
            self._heads.read_ahead((principals, principals, *further))
        caller = await self._authenticate(bearer_token(scope), realm)
        request_id: str = scope.get(asgi.REQUEST_ID, "")
        # It ends with the scope that the telemetry middleware began.
        enter_scope(RequestScope(request_id, realm, caller.principal))
        if not caller.actor:
            return replace(caller, request_id=request_id)
        return replace(caller, request_id=request_id, capabilities=_capabilities(scope))

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        """See `Gate.refused`."""
        await self._denials.record(
            denial_of(
                error,
                realm=caller.realm if caller is not None else realm_of(scope),
                caller=caller,
                request_id=scope.get(asgi.REQUEST_ID, ""),
                operation=scope.get(asgi.OPERATION, ""),
            )
        )


def _capabilities(scope: Scope) -> frozenset[str]:
    """Those that the client says it has, of those that are known."""
    said = b",".join(asgi.list_values(scope, _CAPABILITIES)).decode("latin-1")
    return CAPABILITIES.intersection(each.strip(" ") for each in said.split(","))


def bearer_token(scope: Scope) -> str:
    """The token of the one Authorization header; empty when there is none, or none that counts."""
    found = asgi.list_values(scope, b"authorization")
    if len(found) != 1 or found[0][: len(_SCHEME)].lower() != _SCHEME:
        return ""
    return found[0][len(_SCHEME) :].strip(b" ").decode("latin-1")
