"""Who asks: the principal, its realm, and the request it asks in. Every operation takes one.

Must not break: a caller without an identity and not of the machine itself has no rights at all, so whatever
is left out when one is made can only take rights away.
"""

from typing import Final

from msgspec import Struct

from cynosure.auth.request_key import RequestKey
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import ObjId, RealmId

MAPPING_FILTERS: Final = "mapping-filters"
"""Of an engine that looks up the values of mapping tables."""
POLICY_NAMES: Final = "policy-names"
"""Of an engine that tells its users which policies restrict them."""
RENEWED_CREDENTIALS: Final = "renewed-credentials"
"""Of an engine that renews credentials while it reads, and so needs none that live for long."""
CAPABILITIES: Final = frozenset({MAPPING_FILTERS, POLICY_NAMES, RENEWED_CREDENTIALS})


class Identity(Struct, frozen=True):
    """Who a credential stands for. What its principal may do is looked up when needed (`standing.py`)."""

    principal_id: ObjId
    credential: int = 0
    """Generation of the secret that the token was obtained with; 0 for tokens of another issuer."""
    scope: tuple[str, ...] | None = None
    """Names of the principal roles that were asked for; `None` asks for all."""
    external_roles: tuple[str, ...] = ()
    """Principal roles that another issuer's token says its subject has."""
    actor_id: ObjId = ObjId(0)
    """The trusted service that acts for the principal; 0 when it acts itself."""
    actor_credential: int = 0


class Caller(Struct, frozen=True):
    """The principal behind a request."""

    principal: str
    realm: RealmId = DEFAULT_REALM
    request_id: str = ""
    key: RequestKey | None = None
    """Of a request with an Idempotency-Key."""
    identity: Identity | None = None
    is_operator: bool = False
    """Of the machine itself: the server's own work, or whoever may open its operator socket. May do all."""
    roles: tuple[str, ...] = ()
    """Names of the principal roles that were active when the request came; for logs and audit only."""
    actor: str = ""
    """Name of the service that acts for the principal; for logs and audit only."""
    capabilities: frozenset[str] = frozenset()
    """What the client says that it knows beyond the protocol; counts only for a trusted engine."""

    @property
    def principal_id(self) -> ObjId:
        """Stable id of the principal; 0 for whoever has none."""
        return ObjId(0) if self.identity is None else self.identity.principal_id


def operator_caller(name: str = "operator", realm: RealmId = DEFAULT_REALM, request_id: str = "") -> Caller:
    """A caller of the machine itself."""
    return Caller(name, realm, request_id, is_operator=True)
