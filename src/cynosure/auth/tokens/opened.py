"""Everything about tokens that a serving process shares."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cynosure.auth.identities import Identities
from cynosure.auth.tokens.authenticator import TokenAuthenticator
from cynosure.auth.tokens.failures import Failures
from cynosure.auth.tokens.issue import TokenIssuer
from cynosure.auth.tokens.key_store import GenerateKey, KeyStore
from cynosure.auth.tokens.oidc.accounts import Accounts
from cynosure.auth.tokens.oidc.issuer import OidcIssuer
from cynosure.auth.tokens.oidc.keys import Fetch
from cynosure.auth.tokens.signing_keys import generate_private
from cynosure.common.keyring import Keyring


@dataclass(frozen=True, slots=True)
class Tokens:
    """Keys, and what is done with them."""

    keys: KeyStore
    authenticator: TokenAuthenticator
    issuer: TokenIssuer


@asynccontextmanager
async def open_tokens(
    identities: Identities,
    keyring: Callable[[], Keyring],
    *,
    fetch: Fetch | None = None,
    generate: GenerateKey = generate_private,
) -> AsyncIterator[Tokens]:
    """Tokens for these identities. `fetch` gets other issuers' documents; left out: over the network."""
    persistence, settings = identities.persistence, identities.settings
    clock = persistence.clock
    accounts = Accounts(identities)
    others = [OidcIssuer(name, each, accounts, clock, fetch) for name, each in settings.oidc.items()]
    keys = KeyStore(persistence, keyring, settings.tokens, generate)
    authenticator = TokenAuthenticator(
        keys, identities.standings, clock, issuer=settings.tokens.issuer, others=others
    )
    issuer = TokenIssuer(
        persistence,
        keys,
        identities.standings,
        authenticator,
        identities.hasher,
        settings.tokens,
        Failures(clock),
    )
    try:
        yield Tokens(keys, authenticator, issuer)
    finally:
        await authenticator.close()
