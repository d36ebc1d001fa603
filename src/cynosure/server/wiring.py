"""Everything put together. The only module that knows every class.

A maintainer must not break: what a command does in the running server and what it does in process, when
there is none, comes from the same `open_ground`.
"""

import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from cynosure import __version__
from cynosure.api.app import RequestLimits, Service, make_service
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.health import Readiness, health_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.api.operator import OperatorCommand, OperatorCommands, operator_routes
from cynosure.api.router import Route
from cynosure.catalog.background import Background
from cynosure.catalog.directory import Directory
from cynosure.catalog.maintenance import catalog_tasks
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.opened import Shared
from cynosure.catalog.single_flight import SingleFlight
from cynosure.common.clock import Clock
from cynosure.common.key_file import open_keyring
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.tasks import TaskLoop
from cynosure.server.catalog_commands import OpenDirectory, catalog_commands
from cynosure.server.catalog_storage import file_roots
from cynosure.server.data_dir import prepare_data_dir
from cynosure.server.file_commands import file_commands
from cynosure.server.first_catalog import ensure_first_catalog
from cynosure.server.operator_commands import Running, service_commands
from cynosure.server.settings import Settings
from cynosure.server.store_commands import OpenStore, store_commands
from cynosure.server.store_process import open_serving_store, refuse_missing_file
from cynosure.server.table_commands import table_commands
from cynosure.server.undrop_commands import undrop_commands
from cynosure.storage.open_fileio import FileIOs


@dataclass(frozen=True, slots=True)
class Ground:
    """What operator commands and services stand on. Open inside `open_ground`."""

    readiness: Readiness
    commands: OperatorCommands
    directory: Directory | None = None
    """The open catalogs of a serving process."""


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
    if running is None:

        def open_anew(initialise: bool) -> AbstractAsyncContextManager[Persistence]:
            if initialise:
                prepare_data_dir(settings.server.data_dir)
            else:
                refuse_missing_file(url)
            return open_persistence(url, settings.persistence, initialise=initialise, clock=clock)

        @asynccontextmanager
        async def open_catalogs_anew(initialise: bool) -> AsyncIterator[Directory]:
            async with open_anew(initialise) as persistence, open_directory(settings, persistence) as opened:
                yield opened

        commands.register_all(_commands(settings, open_anew, open_catalogs_anew))
        yield Ground(readiness, commands)
        return
    # What is wrong with the keys is found out at the start, not with the first request that needs one.
    open_keyring(settings.keyring, settings.server.data_dir)
    async with (
        open_serving_store(settings, clock, readiness) as persistence,
        open_directory(settings, persistence) as directory,
        # Innermost: its tasks use the directory, and end before it does.
        TaskLoop(clock, persistence.rng) as tasks,
    ):
        for task in catalog_tasks(directory):
            tasks.register(persistence.tasks, task)
        commands.register_all(
            _commands(settings, lambda _: nullcontext(persistence), lambda _: nullcontext(directory))
        )
        yield Ground(readiness, commands, directory)


def _commands(
    settings: Settings, open_store: OpenStore, open_catalogs: OpenDirectory
) -> list[OperatorCommand[Any]]:
    return [
        *store_commands(open_store),
        *catalog_commands(open_catalogs),
        *table_commands(open_catalogs),
        *file_commands(open_catalogs),
        *undrop_commands(open_catalogs),
    ]


@asynccontextmanager
async def open_directory(settings: Settings, persistence: Persistence) -> AsyncIterator[Directory]:
    """The catalogs of a store, with their files; ends what they began in the background."""
    keyring = cache(lambda: open_keyring(settings.keyring, settings.server.data_dir))
    files = FileIOs(keyring, settings.storage, file_roots=file_roots(settings))
    background = Background()
    shared = Shared(
        persistence,
        tables=RecentTables(settings.catalog.answers_bytes),
        settings=settings.catalog,
        background=background,
        imports=SingleFlight(),
    )
    try:
        yield Directory(shared, files)
    finally:
        await background.close()
        files.close()


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
        common_routes = [*health_routes(ground.readiness), METRICS_ROUTE]

        def make(title: str, routes: list[Route], only_host: str | None = None) -> Service:
            return make_service(
                routes,
                title=title,
                version=__version__,
                clock=clock,
                rng=rng,
                limits=limits,
                access_log=server.access_log,
                only_host=only_host,
            )

        assert ground.directory is not None  # noqa: S101 - this process serves
        catalogs = await ensure_first_catalog(ground.directory, settings)
        yield CatalogProcess(
            public=make(
                "Cynosure catalog",
                [*common_routes, *iceberg_routes(ground.directory), *cynosure_routes(ground.directory)],
                # Everyone is `root`, and a web page can reach the loopback address.
                only_host=server.host,
            ),
            operator=make("Cynosure operator socket", [*common_routes, *operator_routes(ground.commands)]),
            readiness=ground.readiness,
            catalogs=catalogs,
        )
