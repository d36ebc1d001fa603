"""Everything put together. The only module that knows every class.

A maintainer must not break: what a command does in the running server and what it does in process, when
there is none, comes from the same `open_ground` and the same routes.
"""

import random
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TextIO

from cynosure import __version__
from cynosure.api.app import RequestLimits, Service, make_service
from cynosure.api.asgi import App
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.query_events import query_event_routes
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.gate import Gate
from cynosure.api.health import Readiness, health_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.idempotency import KeyedRequests, describe
from cynosure.api.management.events import event_routes
from cynosure.api.management.routes import management_routes
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.api.oauth import oauth_routes
from cynosure.api.openapi import NO_TOKENS, TOKENS
from cynosure.api.operator import OperatorCommand, OperatorCommands, operator_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.polaris.routes import polaris_routes
from cynosure.api.router import Route
from cynosure.auth.identities import Identities
from cynosure.auth.request_key import Peppers
from cynosure.catalog.background import Background
from cynosure.catalog.check_connection import ConnectionRules
from cynosure.catalog.connections import Connections
from cynosure.catalog.directory import Directory
from cynosure.catalog.maintenance import catalog_tasks
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.opened import Shared
from cynosure.catalog.roles.first_role import ensure_catalog_admins
from cynosure.catalog.single_flight import SingleFlight
from cynosure.catalog.task_executor import TaskExecutor
from cynosure.catalog.upkeep.scheduler import upkeep_tasks
from cynosure.common.clock import Clock
from cynosure.common.key_file import open_keyring
from cynosure.delegation.executors.open import open_executor
from cynosure.federation.clients import Clients
from cynosure.federation.maintenance import federation_tasks
from cynosure.federation.seeing import Federation
from cynosure.idempotency.cleanup import cleanup_task
from cynosure.idempotency.engine import Idempotency
from cynosure.idempotency.reservations import Reservations
from cynosure.idempotency.settings import advertise
from cynosure.persistence.batching import Batcher
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import SYSTEM_REALM, RealmId
from cynosure.persistence.tasks import TaskLoop
from cynosure.server.access import Access, OpenKeyring, bootstrap, make_identities, open_access
from cynosure.server.catalog_commands import OpenDirectory, catalog_commands
from cynosure.server.catalog_storage import file_roots
from cynosure.server.data_dir import prepare_data_dir
from cynosure.server.delegated_executor import open_delegated
from cynosure.server.delegation_principal import Rights
from cynosure.server.file_commands import file_commands
from cynosure.server.first_catalog import ensure_first_catalog
from cynosure.server.listen import is_private
from cynosure.server.operator_commands import Running, service_commands
from cynosure.server.realm_commands import OpenIdentities, realm_commands
from cynosure.server.service_principal import DELEGATION, GATEWAY, provision_principal
from cynosure.server.settings import Settings
from cynosure.server.store_commands import OpenStore, store_commands
from cynosure.server.store_process import open_serving_store, refuse_missing_file
from cynosure.server.table_commands import table_commands
from cynosure.server.token_commands import token_commands
from cynosure.storage.open_storage import Storages


@dataclass(frozen=True, slots=True)
class Serving:
    """What a process that serves has open."""

    directory: Directory
    access: Access
    once: KeyedRequests | None
    """Answers requests with an Idempotency-Key, where those count."""
    advertised: Mapping[str, str]
    """What clients are told of that."""
    federation: Federation
    """Asks the remotes behind some of the catalogs."""

    def routes(self) -> list[Route]:
        """What is served to clients and operators alike; all of it asks who wants it."""
        catalogs, access = Catalogs(self.directory, self.federation), self.access
        polaris = polaris_routes(catalogs)
        return [
            *iceberg_routes(catalogs, beside=polaris, advertised=self.advertised),
            *polaris,
            *cynosure_routes(catalogs),
            *management_routes(catalogs, access.identities, advertised=self.advertised),
            *event_routes(access.audit.events),
            *query_event_routes(access.audit.queries),
        ]


@dataclass(frozen=True, slots=True)
class Ground:
    """What operator commands and services stand on. Open inside `open_ground`."""

    readiness: Readiness
    commands: OperatorCommands
    serving: Serving | None = None
    """Of a process that serves."""


@dataclass(frozen=True, slots=True)
class CatalogProcess:
    """The applications of one catalog process."""

    public: Service
    operator: Service
    """For the operator socket only."""
    readiness: Readiness
    catalogs: tuple[str, ...]
    """Names of the first few, for whoever starts the process."""


@asynccontextmanager
async def open_ground(
    settings: Settings, clock: Clock, *, running: Running | None = None
) -> AsyncIterator[Ground]:
    """Open what lies below HTTP. `running` is what a serving process knows about itself."""
    readiness = Readiness(clock)
    url = settings.store_url.reveal()
    commands = OperatorCommands(
        service_commands(
            clock,
            readiness,
            data_dir=settings.server.data_dir,
            store=url.partition(":")[0],
            running=running,
        )
    )
    keyring = cache(lambda: open_keyring(settings.keyring, settings.server.data_dir))
    if running is None:

        def open_anew(initialise: bool) -> AbstractAsyncContextManager[Persistence]:
            return _open_store(settings, clock, initialise=initialise)

        @asynccontextmanager
        async def open_identities_anew(initialise: bool) -> AsyncIterator[Identities]:
            async with open_anew(initialise) as persistence:
                yield make_identities(settings, persistence, keyring)

        @asynccontextmanager
        async def open_catalogs_anew(initialise: bool) -> AsyncIterator[Directory]:
            async with (
                open_identities_anew(initialise) as identities,
                open_directory(settings, identities, keyring) as opened,
            ):
                yield opened

        commands.register_all(_commands(settings, open_anew, open_catalogs_anew, open_identities_anew))
        yield Ground(readiness, commands)
        return
    # What is wrong with the keys is found out at the start, not with the first request that needs one.
    keyring()
    async with (
        open_serving_store(settings, clock, readiness) as persistence,
        open_serving(settings, persistence, keyring, sys.stdout) as serving,
        # Innermost: its tasks use the directory, and end before it does.
        TaskLoop(clock, persistence.rng) as tasks,
    ):
        directory, identities = serving.directory, serving.access.identities
        readiness.on_shutdown(serving.access.audit.events.stop_waiting)
        readiness.on_shutdown(directory.shared.watching.stop)
        if serving.once is not None:
            readiness.on_shutdown(serving.once.stop_waiting)
        upkeep = upkeep_tasks(directory, settings.delegation)
        for task in (*catalog_tasks(directory), *federation_tasks(directory), *upkeep):
            tasks.register(persistence.tasks, task)
        if settings.idempotency.cleanup.enabled:
            tasks.register(persistence.tasks, cleanup_task(persistence, settings.idempotency))
        commands.register_all(
            _commands(
                settings,
                lambda _: nullcontext(persistence),
                lambda _: nullcontext(directory),
                lambda _: nullcontext(identities),
            )
        )
        yield Ground(readiness, commands, serving)


def _commands(
    settings: Settings, open_store: OpenStore, open_catalogs: OpenDirectory, open_identities: OpenIdentities
) -> list[OperatorCommand[Any]]:
    return [
        *store_commands(open_store),
        *catalog_commands(open_catalogs),
        *table_commands(open_catalogs),
        *file_commands(open_catalogs),
        *realm_commands(open_identities),
        *token_commands(open_store, settings),
    ]


def _open_store(
    settings: Settings, clock: Clock, *, initialise: bool
) -> AbstractAsyncContextManager[Persistence]:
    url = settings.store_url.reveal()
    if initialise:
        prepare_data_dir(settings.server.data_dir)
    else:
        refuse_missing_file(url)
    return open_persistence(
        url,
        settings.persistence,
        initialise=initialise,
        clock=clock,
        key_lifetime=settings.idempotency.kept,
    )


@asynccontextmanager
async def open_serving(
    settings: Settings, persistence: Persistence, keyring: OpenKeyring, show: TextIO
) -> AsyncIterator[Serving]:
    """Everything that routes need, after what an earlier version or an interrupted start left out is made.

    New credentials are shown on `show`.
    """
    identities = make_identities(settings, persistence, keyring)
    await bootstrap(settings, identities, show)
    async with (
        open_directory(settings, identities, keyring) as directory,
        open_access(settings, identities, keyring) as access,
        open_once(settings, persistence, keyring) as once,
        open_federation(settings, persistence, keyring) as federation,
    ):
        await access.check_keyring()
        # After the realms have their roles: the first of them is given what is made here.
        await ensure_catalog_admins(directory)
        if settings.query.provision is not None:
            path = settings.query.provision
            await provision_principal(identities, DEFAULT_REALM, GATEWAY, path, is_trusted=True)
        async with open_tasks(settings, directory, access):
            yield Serving(directory, access, once, advertise(settings.idempotency), federation)


@asynccontextmanager
async def open_federation(
    settings: Settings, persistence: Persistence, keyring: OpenKeyring
) -> AsyncIterator[Federation]:
    """What asks the remotes behind catalogs. Nothing is connected to before somebody asks for it."""
    clients = Clients(settings.federation, keyring, persistence.clock, rng=persistence.rng)
    federation = Federation(clients, settings.federation, persistence.clock)
    try:
        yield federation
    finally:
        await federation.close()


@asynccontextmanager
async def open_tasks(settings: Settings, directory: Directory, access: Access) -> AsyncIterator[None]:
    """Let operations of the directory order long work, here or at a delegation service."""
    delegation, persistence = settings.delegation, directory.shared.persistence
    rights: Rights | None = None
    if delegation.provision is not None:
        realm = RealmId(delegation.service.realm)
        await provision_principal(access.identities, realm, DELEGATION, delegation.provision)
        rights = Rights(directory, realm)

    def open_service() -> AbstractAsyncContextManager[TaskExecutor]:
        return open_delegated(
            settings,
            access.tokens.keys,
            persistence.clock,
            persistence.rng,
            None if rights is None else rights.ensure,
        )

    async with open_executor(
        delegation, directory, make_delegated=open_service, rng=persistence.rng
    ) as executor:
        directory.shared.use_executor(executor)
        yield


@asynccontextmanager
async def open_once(
    settings: Settings, persistence: Persistence, keyring: OpenKeyring
) -> AsyncIterator[KeyedRequests | None]:
    """What answers requests with an Idempotency-Key; `None` where they are turned off."""
    if not settings.idempotency.enabled:
        yield None
        return
    clock = persistence.clock
    batcher = Batcher(persistence.backend, clock, persistence.rng)
    reservations = Reservations(
        persistence.store(SYSTEM_REALM),
        batcher,
        persistence.ids,
        clock,
        settings.idempotency,
        holder=str(persistence.owner),
    )
    engine = Idempotency(
        reservations, clock, settings.idempotency, describe=describe, peppers=Peppers(keyring)
    )
    try:
        yield KeyedRequests(engine)
    finally:
        await engine.close()
        await batcher.close()


@asynccontextmanager
async def open_directory(
    settings: Settings, identities: Identities, keyring: OpenKeyring
) -> AsyncIterator[Directory]:
    """The catalogs of a store, with their files; ends what they began in the background."""
    # Clients on other machines do not see the files of this one.
    has_files = settings.storage.file_on_network or is_private(settings.server.host)
    storages = Storages(
        keyring,
        settings.storage,
        identities.persistence.clock,
        file_roots=file_roots(settings) if has_files else (),
    )
    background = Background()
    shared = Shared(
        identities.persistence,
        tables=RecentTables(settings.catalog.answers_bytes),
        settings=settings.catalog,
        background=background,
        authorizer=identities.authorizer,
        imports=SingleFlight(),
        access=settings.auth,
        delegation=settings.delegation,
    )
    try:
        yield Directory(shared, storages, Connections(keyring, _connection_rules(settings)))
    finally:
        await background.close()
        storages.close()


def _connection_rules(settings: Settings) -> ConnectionRules:
    federation = settings.federation
    return ConnectionRules(
        is_enabled=federation.enabled,
        is_implicit_allowed=federation.allow_implicit,
        is_insecure_allowed=federation.allow_insecure,
    )


@asynccontextmanager
async def open_operator_app(
    settings: Settings, clock: Clock, *, initialise: bool = False
) -> AsyncIterator[App]:
    """What the operator socket serves, in the process of a command, for when no server runs."""
    keyring = cache(lambda: open_keyring(settings.keyring, settings.server.data_dir))
    async with (
        _open_store(settings, clock, initialise=initialise) as persistence,
        # Standard output is the command's own, which may be one JSON document.
        open_serving(settings, persistence, keyring, sys.stderr) as serving,
    ):
        service = make_service(
            serving.routes(),
            title="Cynosure, in process",
            version=__version__,
            clock=clock,
            rng=persistence.rng,
            access_log="none",
            gate=OperatorGate(),
            once=serving.once,
            schemes=NO_TOKENS,
        )
        yield service.app


@asynccontextmanager
async def open_catalog(
    settings: Settings, clock: Clock, rng: random.Random, running: Running
) -> AsyncIterator[CatalogProcess]:
    """Open one catalog process: its ground and the applications on it."""
    server = settings.server
    limits = RequestLimits(
        max_body_bytes=server.max_body_bytes,
        body_timeout_s=server.body_timeout.total_seconds(),
        request_timeout_s=server.request_timeout.total_seconds(),
    )
    async with open_ground(settings, clock, running=running) as ground:
        serving = ground.serving
        assert serving is not None  # noqa: S101 - this process serves
        common_routes = [*health_routes(ground.readiness), METRICS_ROUTE]

        def make(title: str, routes: list[Route], gate: Gate) -> Service:
            return make_service(
                routes,
                title=title,
                version=__version__,
                clock=clock,
                rng=rng,
                limits=limits,
                access_log=server.access_log,
                gate=gate,
                once=serving.once,
                schemes=NO_TOKENS if isinstance(gate, OperatorGate) else TOKENS,
            )

        catalogs = await ensure_first_catalog(serving.directory, settings)
        access = serving.access
        token_routes = oauth_routes(access.tokens.issuer, access.tokens.keys, access.audit.denials)
        yield CatalogProcess(
            public=make(
                "Cynosure catalog",
                [*common_routes, *token_routes, *serving.routes()],
                access.gate(serving.directory),
            ),
            operator=make(
                "Cynosure operator socket",
                [*common_routes, *operator_routes(ground.commands), *serving.routes()],
                OperatorGate(),
            ),
            readiness=ground.readiness,
            catalogs=catalogs,
        )
