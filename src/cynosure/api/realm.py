"""Which realm a request is about: the header `Polaris-Realm`, else the default realm.

Must not break: a request that could be read as one for two realms is refused. What stands between a client
and us may have looked at the other one.
"""

from typing import Final

from cynosure.api.asgi import Scope, list_values
from cynosure.auth.errors import NoSuchRealm
from cynosure.common.errors import BadInput
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.scopes import is_realm_name
from cynosure.persistence.spi import RealmId

HEADER: Final = b"polaris-realm"


def realm_of(scope: Scope) -> RealmId:
    """The realm that is asked for; that it exists is for others to say. `NoSuchRealm` if it cannot."""
    found = list_values(scope, HEADER)
    if not found:
        return DEFAULT_REALM
    if len(found) > 1:
        raise _unclear()
    realm = found[0].decode("latin-1")
    if not is_realm_name(realm):
        if not realm.isascii() or not realm.isprintable() or not realm or "," in realm or " " in realm:
            raise _unclear()
        raise NoSuchRealm(realm[:128])
    return RealmId(realm)


def _unclear() -> BadInput:
    return BadInput(
        "The request does not name one realm",
        field="Polaris-Realm",
        fix="Send the header once, with the name of one realm, or leave it out.",
    )
