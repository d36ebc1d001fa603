"""Accounts of another issuer, bound to principals: found, matched by name or made on first use.

Must not break: the account is `ISSUER SUBJECT`. Its name only matters the first time.
"""

from typing import Final, Literal

from cynosure.auth.errors import NoSuchPrincipal, PrincipalExists
from cynosure.auth.identities import Identities
from cynosure.auth.operations.provision_principal import bind_subject, provision_principal
from cynosure.auth.principals import find_subject
from cynosure.common.errors import AlreadyExists, BadInput, NotAuthenticated
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.spi import ObjId, RealmId

FirstUse = Literal["match", "provision"]
_FIRST_USE: Final = {"match": bind_subject, "provision": provision_principal}
_log = Log(__name__)


class Accounts:
    """The principals of other issuers' accounts."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def load_principal_id(
        self, realm: RealmId, account: str, name: str | None, first_use: FirstUse
    ) -> ObjId:
        """The principal of an account; `NotAuthenticated` when it has none and can have none."""
        found = await find_subject(self._identities.persistence, realm, account)
        if found is not None:
            return found.id
        if name is None:
            raise _no_principal()
        try:
            return (await _FIRST_USE[first_use](self._identities, realm, name, account)).id
        except (NoSuchPrincipal, PrincipalExists, AlreadyExists, BadInput) as error:
            # The account is known to its issuer, so this is for an operator to see, not a stranger's noise.
            _log.event("oidc.account_refused", level=WARNING, error=error, first_use=first_use)
            raise _no_principal() from error


def _no_principal() -> NotAuthenticated:
    return NotAuthenticated(
        "No principal belongs to this account",
        fix="Ask an administrator for one; the server's log says what is in the way.",
    )
