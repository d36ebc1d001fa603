"""A realm with principals, the tokens of a server on it, and more servers on the same store where needed."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.caller import operator_caller
from cynosure.auth.credentials import Credentials
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standings
from cynosure.auth.tokens.oidc.keys import Fetch
from cynosure.auth.tokens.opened import Tokens, open_tokens
from cynosure.auth.tokens.signing_keys import generate_private
from cynosure.common.clock import Clock
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import DEFAULT_REALM, REALMS
from cynosure.persistence.scopes import create_realm
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import RealmId

KEYRING = Keyring({"k1": bytes(range(32))}, "k1")
PEER = "192.0.2.7"
_PRIVATE_KEYS = itertools.cycle([generate_private() for _ in range(8)])
"""Made once: each costs as much CPU as a hundred tests."""


class TokenWorld:
    """One server on a store."""

    def __init__(self, persistence: Persistence, identities: Identities, tokens: Tokens, clock: Clock):
        self.persistence = persistence
        self.identities = identities
        self.tokens = tokens
        self.clock = clock

    async def add_realm(self, name: str) -> RealmId:
        realm, persistence = RealmId(name), self.persistence
        await create_realm(
            persistence.committer(REALMS),
            realm,
            backend=persistence.backend,
            ids=persistence.ids,
            clock=self.clock,
            principal="test",
        )
        return realm

    async def add_principal(self, name: str, *roles: str, realm: RealmId = DEFAULT_REALM) -> Credentials:
        operator = operator_caller(realm=realm)
        created = await create_principal(self.identities, operator, NewPrincipal(name))
        for role in roles:
            await assign_principal_role(self.identities, operator, name, role)
        return created.credentials

    async def add_role(
        self, name: str, *, is_federated: bool = False, realm: RealmId = DEFAULT_REALM
    ) -> None:
        wanted = NewPrincipalRole(name, is_federated=is_federated)
        await create_principal_role(self.identities, operator_caller(realm=realm), wanted)

    async def trust(self, name: str, *, is_trusted: bool = True) -> None:
        await set_trusted_service(self.identities, operator_caller(), name, is_trusted=is_trusted)

    async def login(
        self, credentials: Credentials, scope: str = "", *, realm: RealmId = DEFAULT_REALM
    ) -> str:
        issued = await self.tokens.issuer.issue_for_secret(
            realm, credentials.client_id, credentials.client_secret, scope, PEER
        )
        return issued.token.reveal()

    async def exchange(self, token: str, scope: str = "", *, realm: RealmId = DEFAULT_REALM) -> str:
        return (await self.tokens.issuer.issue_for_token(realm, Secret(token), scope)).token.reveal()

    async def act_for(
        self, subject: str, actor: str, scope: str = "", *, realm: RealmId = DEFAULT_REALM
    ) -> str:
        issued = await self.tokens.issuer.issue_on_behalf(realm, Secret(subject), Secret(actor), scope)
        return issued.token.reveal()


@asynccontextmanager
async def server_on(
    persistence: Persistence,
    clock: Clock,
    settings: AuthSettings,
    *,
    fetch: Fetch | None = None,
    keyring: Keyring = KEYRING,
) -> AsyncIterator[TokenWorld]:
    """One more server: it shares the store and nothing that is remembered about principals and keys."""
    standings = Standings(persistence)
    authorizer = InternalAuthorizer(persistence, standings, settings)
    identities = Identities(persistence, standings, authorizer, settings, SecretHasher(lambda: keyring))
    async with open_tokens(
        identities, lambda: keyring, fetch=fetch, generate=lambda: next(_PRIVATE_KEYS)
    ) as tokens:
        yield TokenWorld(persistence, identities, tokens, clock)


@asynccontextmanager
async def open_world(
    clock: Clock,
    settings: AuthSettings | None = None,
    *,
    url: str = "memory:",
    fetch: Fetch | None = None,
    keyring: Keyring = KEYRING,
) -> AsyncIterator[TokenWorld]:
    """A fresh store with one server."""
    opened = open_persistence(url, PersistenceSettings(), initialise=True, clock=clock)
    async with (
        opened as persistence,
        server_on(persistence, clock, settings or AuthSettings(), fetch=fetch, keyring=keyring) as world,
    ):
        yield world


def changed(settings: AuthSettings | None = None, **tokens: object) -> AuthSettings:
    """Settings with other values for tokens."""
    settings = settings or AuthSettings()
    return msgspec.structs.replace(settings, tokens=msgspec.structs.replace(settings.tokens, **tokens))
