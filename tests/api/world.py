"""The whole API in one process as a server has it: realms with roots, real tokens, a store in memory."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from cynosure.api.app import Service, make_service
from cynosure.api.asgi import Receive, Scope, Send
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.query_events import query_event_routes
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.management.events import event_routes
from cynosure.api.management.routes import management_routes
from cynosure.api.oauth import TOKENS_PATH, oauth_routes
from cynosure.api.polaris.routes import polaris_routes
from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.audit.opened import open_audit
from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.identities import Identities
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standings
from cynosure.auth.tokens.opened import open_tokens
from cynosure.catalog.background import Background
from cynosure.catalog.check_connection import ConnectionRules
from cynosure.catalog.connections import Connections
from cynosure.catalog.directory import Directory
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.opened import OpenCatalog, Shared
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.single_flight import SingleFlight
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.federation.clients import Clients
from cynosure.federation.remote import RemoteCatalog
from cynosure.federation.seeing import Federation
from cynosure.federation.settings import FederationSettings
from cynosure.idempotency.settings import IdempotencySettings, advertise
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.settings import PersistenceSettings
from cynosure.server.access import Access
from cynosure.server.settings import Settings
from cynosure.server.wiring import open_once
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storages
from cynosure.storage.settings import StorageSettings
from cynosure.testing.admin import MANAGEMENT, Admin
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.login import Credential
from cynosure.testing.small_purger import use_small_purger

BASE = "http://test"


class World:
    """A service, and clients of it."""

    def __init__(
        self,
        service: Service,
        identities: Identities,
        folder: Path,
        root: Credential,
        directory: Directory,
    ) -> None:
        self.service = service
        self.directory = directory
        self.identities = identities
        self.folder = folder
        self.root = root

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            # In a task of its own, as a server has it: what a request reads ahead is not for the next one.
            await asyncio.ensure_future(service.app(scope, receive, send))

        self._transport = httpx.ASGITransport(app=answer)

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        """A client with this token, or a stranger; its paths are those of the management API."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx.AsyncClient(transport=self._transport, base_url=BASE + MANAGEMENT, headers=headers)

    async def fetch_token(self, who: Credential, scope: str = "PRINCIPAL_ROLE:ALL") -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": who.client_id,
            "client_secret": who.secret,
            "scope": scope,
        }
        async with httpx.AsyncClient(transport=self._transport, base_url=BASE) as client:
            answer = await client.post(TOKENS_PATH, data=form)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token

    async def login(self, who: Credential) -> httpx.AsyncClient:
        return self.client(await self.fetch_token(who))

    def admin(self, client: httpx.AsyncClient) -> Admin:
        """An administrator who speaks through a client of this world."""
        bare = httpx.AsyncClient(transport=self._transport, base_url=BASE, headers=client.headers)
        return Admin(bare)

    def catalog(self, directory: str, **more: Any) -> dict[str, Any]:
        """A catalog of local files, as createCatalog takes it; called like its directory."""
        location = f"file://{self.folder / directory}"
        return {
            "catalog": {
                "type": "INTERNAL",
                "name": directory,
                "properties": {"default-base-location": location},
                "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
                **more,
            }
        }


@asynccontextmanager
async def open_world(
    folder: Path,
    settings: AuthSettings = AuthSettings(),  # noqa: B008
    idempotency: IdempotencySettings = IdempotencySettings(),  # noqa: B008
    connections: ConnectionRules = ConnectionRules(),  # noqa: B008
    *,
    remotes: Callable[[OpenCatalog], RemoteCatalog] | None = None,
) -> AsyncIterator[World]:
    """A world with the default realm, whose root is known; `remotes`: what is behind federated catalogs."""
    keyring = cache(lambda: open_keyring(KeyringSettings(), folder))
    catalog_settings = CatalogSettings()
    background = Background()
    async with open_persistence("memory:", PersistenceSettings(), initialise=True) as persistence:
        standings = Standings(persistence)
        authorizer = InternalAuthorizer(persistence, standings, settings)
        hasher = SecretHasher(keyring)
        identities = Identities(persistence, standings, authorizer, settings, hasher)
        made = await bootstrap_realm(identities, DEFAULT_REALM)
        assert made is not None
        shared = Shared(
            persistence,
            tables=RecentTables(catalog_settings.answers_bytes),
            settings=catalog_settings,
            background=background,
            authorizer=authorizer,
            imports=SingleFlight(),
            access=settings,
        )
        storages = Storages(
            keyring, StorageSettings(), persistence.clock, file_roots=[Location.parse(str(folder))]
        )
        directory = Directory(shared, storages, Connections(keyring, connections))
        use_small_purger(directory)
        federated = FederationSettings(retries=0)
        clients = Clients(federated, keyring, persistence.clock, opening=remotes)
        catalogs = Catalogs(directory, Federation(clients, federated, persistence.clock))
        async with (
            open_audit(persistence, authorizer, settings.audit) as audit,
            open_tokens(identities, keyring) as tokens,
            open_once(Settings(idempotency=idempotency), persistence, keyring) as once,
        ):
            advertised = advertise(idempotency)
            polaris = polaris_routes(catalogs)
            service = make_service(
                [
                    *oauth_routes(tokens.issuer, tokens.keys, audit.denials),
                    *iceberg_routes(catalogs, beside=polaris, advertised=advertised),
                    *polaris,
                    *cynosure_routes(catalogs),
                    *management_routes(catalogs, identities, advertised=advertised),
                    *event_routes(audit.events),
                    *query_event_routes(audit.queries),
                ],
                title="test",
                version="1",
                clock=persistence.clock,
                rng=random.Random(1),
                gate=Access(identities, tokens, audit).gate(directory),
                once=once,
            )
            secret = KNOWN.add(made.client_secret.reveal(), client_id=made.client_id)
            root = Credential(made.client_id, secret)
            try:
                yield World(service, identities, folder, root, directory)
            finally:
                await clients.close()
                await background.close()
                storages.close()
