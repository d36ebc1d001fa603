"""Who asks: the principal, its realm, and the request it asks in. Every operation takes one."""

from msgspec import Struct

from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId


class Caller(Struct, frozen=True):
    """The principal behind a request."""

    principal: str
    realm: RealmId = DEFAULT_REALM
    request_id: str = ""
    key_hash: str = ""
    """Hash of the Idempotency-Key; empty without one."""
