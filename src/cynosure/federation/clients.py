"""One client per remote, in one process: opened by the first request, kept while it is used.

A client is for one version of a connection and of the storage beside it. When either is changed, or a secret
rotated, the next request gets a new one, and what runs ends on the old.

A maintainer must not break: `get` asks nobody and waits for nothing, so it can be called for every request;
clients that nobody uses hold no sockets; and no client outlives `close`.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple

from cynosure.catalog.connection import Connection, open_secrets
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.clock import Clock
from cynosure.common.keyring import Keyring
from cynosure.federation.circles import mark_of
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.guard.health import Health
from cynosure.federation.guard.metrics import CLIENTS
from cynosure.federation.policy import policy_of
from cynosure.federation.remote import RemoteCatalog
from cynosure.federation.remotes.opening import open_remote, require_connection
from cynosure.federation.settings import FederationSettings
from cynosure.persistence.spi import CatalogId, RealmId
from cynosure.storage.config import StorageConfig

_REST_S: Final = 60.0
"""A client that was not used for so long ends its connections."""
_LOOKED_AT: Final = 4
"""Clients that each request looks at, to see whether they may rest: those unused longest."""

_Place = tuple[RealmId, CatalogId]
Open = Callable[[OpenCatalog], RemoteCatalog]


class _Version(NamedTuple):
    """What a client was made of."""

    connection: Connection
    storage: StorageConfig
    base: str
    asks_credentials: bool
    """Whether the remote's own credentials are passed on."""


class _Known(NamedTuple):
    """A client that is kept."""

    entity: CatalogEntity
    """For which its version was found out last."""
    version: _Version
    client: GuardedRemote


class Clients:
    """The clients of all remotes of one process."""

    def __init__(
        self,
        settings: FederationSettings,
        keyring: Callable[[], Keyring],
        clock: Clock,
        *,
        opening: Open | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._keyring = keyring
        self._clock = clock
        self._open: Open = opening or self._open_remote
        self._rng = rng or random.SystemRandom()
        self._clients: OrderedDict[_Place, _Known] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()

    def get(self, catalog: OpenCatalog) -> GuardedRemote:
        """The client of a federated catalog's remote, for its connection as it is now."""
        place = _place_of(catalog)
        known = self._clients.get(place)
        if known is not None and known.entity is catalog.entity:
            self._clients.move_to_end(place)
            client = known.client
        else:
            client = self._renew(catalog, place, known)
        self._make_room()
        return client

    def find_health(self, catalog: OpenCatalog) -> Health | None:
        """How a catalog's remote is; `None` when it was not asked yet, since its connection was changed."""
        known = self._clients.get(_place_of(catalog))
        is_current = known is not None and known.version == self._version_of(catalog)
        return known.client.health() if known is not None and is_current else None

    async def close(self) -> None:
        """End all connections."""
        closing = [known.client.close() for known in self._clients.values()]
        self._clients.clear()
        CLIENTS.set(0)
        await asyncio.gather(*closing, *self._ending)

    def _renew(self, catalog: OpenCatalog, place: _Place, known: _Known | None) -> GuardedRemote:
        """The client that is kept, if what it was made of is still so; else a new one."""
        version = self._version_of(catalog)
        if known is not None and known.version == version:
            client = known.client
        else:
            if known is not None:
                self._run(known.client.retire())
            opening = partial(self._open, catalog)
            name, mark = catalog.entity.name, mark_of(catalog)
            client = GuardedRemote(name, opening, self._settings, self._clock, self._rng, mark=mark)
        self._clients[place] = _Known(catalog.entity, version, client)
        self._clients.move_to_end(place)
        return client

    def _make_room(self) -> None:
        while len(self._clients) > self._settings.clients:
            _, oldest = self._clients.popitem(last=False)
            self._run(oldest.client.retire())
        # A few with every request instead of a task of its own: without requests there is nothing new to end.
        for place in _first(self._clients, _LOOKED_AT):
            client = self._clients[place].client
            if client.is_open and not client.is_busy and client.idle_s > _REST_S:
                self._run(client.rest())
        CLIENTS.set(len(self._clients))

    def _run(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _version_of(self, catalog: OpenCatalog) -> _Version:
        entity = catalog.entity
        asks_credentials = policy_of(catalog, self._settings).credentials == "remote"
        return _Version(require_connection(catalog), entity.storage, entity.base_location, asks_credentials)

    def _open_remote(self, catalog: OpenCatalog) -> RemoteCatalog:
        sealed = require_connection(catalog).sealed_secrets
        secrets = open_secrets(sealed, self._keyring(), (catalog.realm, catalog.entity.id))
        return open_remote(catalog, secrets, self._settings, self._clock)


def _first(clients: OrderedDict[_Place, _Known], most: int) -> list[_Place]:
    return [place for place, _ in zip(clients, range(most), strict=False)]


def _place_of(catalog: OpenCatalog) -> _Place:
    return catalog.realm, catalog.entity.id
