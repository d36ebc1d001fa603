"""The way from a catalog to its delegation service.

A maintainer must not break: each realm has a token of its own, made with its own keys.
"""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from cynosure.auth.tokens.key_store import KeyStore
from cynosure.auth.tokens.service_tokens import ServiceTokens
from cynosure.client.delegation import DelegationApi
from cynosure.client.http import HttpClient
from cynosure.client.tls import ClientTls
from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.delegation.executors.delegated import DelegatedTaskExecutor, Prepare
from cynosure.persistence.spi import RealmId
from cynosure.server.settings import Settings


class _RealmTokens:
    def __init__(self, tokens: ServiceTokens, realm: RealmId) -> None:
        self._tokens = tokens
        self._realm = realm

    async def load(self) -> Secret:
        return await self._tokens.load(self._realm)

    def drop(self) -> None:
        self._tokens.drop(self._realm)


@asynccontextmanager
async def open_delegated(
    settings: Settings, keys: KeyStore, clock: Clock, rng: random.Random, prepare: Prepare | None
) -> AsyncIterator[DelegatedTaskExecutor]:
    """An executor that sends orders to the service that the settings name."""
    delegation = settings.delegation
    if delegation.endpoint is None:
        raise Misconfigured("Nobody says who does delegated work", fix="Set delegation.endpoint.")
    tls = delegation.tls
    is_tls = delegation.endpoint.startswith("https:")
    tokens = ServiceTokens(keys, clock, issuer=settings.auth.tokens.issuer)
    async with HttpClient(
        delegation.endpoint.rstrip("/"),
        clock=clock,
        rng=rng,
        tls=ClientTls(tls.ca, tls.certificate, tls.key) if is_tls else None,
    ) as http:

        @cache
        def api_of(realm: str) -> DelegationApi:
            return DelegationApi(http, _RealmTokens(tokens, RealmId(realm)))

        yield DelegatedTaskExecutor(api_of, prepare)
