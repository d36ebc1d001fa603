"""Who may give orders to the delegation service: the right certificate, and a token of the catalog.

A maintainer must not break: a certificate of the right authority alone opens nothing, neither does a token
alone where TLS is asked for; and the token is one that the catalog made for this service and this realm.
"""

from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from cynosure.api import asgi
from cynosure.api.asgi import Scope
from cynosure.api.delegation.errors import NoScope, WrongClient
from cynosure.api.token_gate import bearer_token
from cynosure.auth.caller import Caller
from cynosure.auth.tokens.service_tokens import EXECUTE_TASKS, ServiceTokenVerifier
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.common.telemetry.request_scope import RequestScope, enter_scope
from cynosure.persistence.spi import RealmId

_log = Log(__name__)


class DelegationGate:
    """Lets in the catalog of one realm."""

    def __init__(
        self, verifier: ServiceTokenVerifier, *, realm: RealmId, client_names: Sequence[str] | None
    ) -> None:
        """`client_names`: common names of certificates that may come in; `None` where there is no TLS."""
        self._verifier = verifier
        self._realm = realm
        self._client_names = None if client_names is None else frozenset(client_names)

    async def admit(self, scope: Scope) -> Caller:
        """See `Gate.admit`."""
        if self._client_names is not None:
            self._check_certificate(scope)
        said = await self._verifier.verify(bearer_token(scope))
        if EXECUTE_TASKS not in said.scope.split(" "):
            raise NoScope(
                "The token does not allow to give orders",
                fix=f"Get a token with the scope {EXECUTE_TASKS}.",
            )
        request_id: str = scope.get(asgi.REQUEST_ID, "")
        # It ends with the scope that the telemetry middleware began.
        enter_scope(RequestScope(request_id, self._realm, said.sub))
        return Caller(said.sub, self._realm, request_id)

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        """See `Gate.refused`. There is no catalog here to keep a record in: the log has it."""
        client = scope.get("client")
        _log.event(
            "delegation.refused",
            level=WARNING,
            error=error,
            operation=scope.get(asgi.OPERATION, ""),
            client=client[0] if client else "",
        )

    def _check_certificate(self, scope: Scope) -> None:
        assert self._client_names is not None  # noqa: S101 - asked only where there is TLS
        names = common_names(scope)
        if len(names) != 1 or names[0] not in self._client_names:
            raise WrongClient(
                "The certificate is not of a client that may give orders",
                fix="Show the catalog's certificate, or name this one in delegation.service.client_names.",
                name=names[0][:100] if names else "",
            )


def common_names(scope: Scope) -> list[str]:
    """The common names of the certificate that the client has proved to own; none without one."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    tls = extensions.get("tls")
    subject = tls["client_cert_name"] if tls else None
    if not subject:
        return []
    found = x509.Name.from_rfc4514_string(subject).get_attributes_for_oid(NameOID.COMMON_NAME)
    return [str(each.value) for each in found]
