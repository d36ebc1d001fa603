"""Who may do what, put together: identities, tokens, audit and the gates in front of the routes.

A maintainer must not break: the gate of operators stands only in front of the operator socket and of commands
that run in their own process; everything else goes through tokens.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TextIO

from cynosure.api.asgi import PARAMS, Scope
from cynosure.api.token_gate import TokenGate
from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.audit.opened import Audit, open_audit
from cynosure.auth.bootstrap import Bootstrapped, ensure_realms_bootstrapped, read_given
from cynosure.auth.credential_files import CredentialFiles
from cynosure.auth.identities import Identities
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.standing import Standings
from cynosure.auth.tokens.opened import Tokens, open_tokens
from cynosure.catalog.directory import Directory
from cynosure.common.keyring import Keyring
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import REALMS
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.spi import RealmId, RefKey
from cynosure.server.settings import Settings

OpenKeyring = Callable[[], Keyring]


@dataclass(frozen=True, slots=True)
class Access:
    """What a serving process needs to know its callers."""

    identities: Identities
    tokens: Tokens
    audit: Audit

    def gate(self, directory: Directory) -> TokenGate:
        """The gate of the public port."""
        return TokenGate(
            self.tokens.authenticator,
            self.audit.denials,
            heads=self.identities.persistence.heads,
            ahead=lambda scope, realm: _expect(directory, scope, realm),
        )

    async def check_keyring(self) -> None:
        """Refuse a store whose signing keys are protected by another keyring than this process has.

        Else nobody could log in, and nobody would know why. That of secrets is looked at by `bootstrap`.
        """
        persistence = self.identities.persistence
        for realm in await list_realms(persistence.committer(REALMS)):
            await self.tokens.keys.require_keyring(realm)


def make_identities(settings: Settings, persistence: Persistence, keyring: OpenKeyring) -> Identities:
    """The principals of a store, and the authorizer that knows them."""
    standings = Standings(persistence)
    authorizer = InternalAuthorizer(persistence, standings, settings.auth)
    return Identities(persistence, standings, authorizer, settings.auth, SecretHasher(keyring))


@asynccontextmanager
async def open_access(
    settings: Settings, identities: Identities, keyring: OpenKeyring
) -> AsyncIterator[Access]:
    """Open what needs closing."""
    async with (
        open_tokens(identities, keyring) as tokens,
        open_audit(identities.persistence, identities.authorizer, settings.auth.audit) as audit,
    ):
        yield Access(identities, tokens, audit)


async def bootstrap(settings: Settings, identities: Identities, show: TextIO) -> None:
    """Give realms their first principal, and show its credentials, once, to whoever started this process.

    `show` is no log: logs are kept and shipped, this is for one pair of eyes.
    """
    made = await ensure_realms_bootstrapped(
        identities, read_given(os.environ), CredentialFiles(settings.server.data_dir)
    )
    _show(made, show)


def _show(made: Sequence[Bootstrapped], to: TextIO) -> None:
    for each in made:
        if each.path is None:
            continue
        print(
            f"Realm {each.realm}: the principal root was made. This is shown once:\n"
            f"  client id      {each.credentials.client_id}\n"
            f"  client secret  {each.credentials.client_secret.reveal()}\n"
            f"  kept in        {each.path}",
            file=to,
            flush=True,
        )


def _expect(directory: Directory, scope: Scope, realm: RealmId) -> Iterable[RefKey]:
    """References of the catalog that a path names, so that all heads of a request come in one read."""
    name = scope[PARAMS].get("prefix")
    return () if name is None else directory.list_likely(realm, name)
