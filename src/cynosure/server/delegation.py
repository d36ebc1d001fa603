"""`serve delegation`: the life of one process of the delegation service.

A maintainer must not break: the lock on the data directory is held for as long as tasks may be worked on
under its name, and what is under way when the process is told to stop is finished or given back.
"""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import uvloop
from msgspec import Struct

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.delegated.settings import ServiceSettings
from cynosure.common.telemetry.logs import Log, start_logging
from cynosure.common.telemetry.tracing import start_tracing
from cynosure.server.data_dir import RoleLock, prepare_data_dir
from cynosure.server.delegation_credentials import read_credentials, wait_for_file
from cynosure.server.delegation_settings import check_service
from cynosure.server.delegation_wiring import DelegationProcess, open_delegation
from cynosure.server.http_server import HttpServer, attending, http_config, start_telemetry
from cynosure.server.link import SupervisorLink
from cynosure.server.listen import listen_tcp, url_of
from cynosure.server.settings import Settings, SettingsSource, TlsSettings
from cynosure.server.tls import ServerTls

ROLE = "delegation"
GIVE_BACK_S = 20.0
"""How long the process may take to end after its drain."""

_log = Log(__name__)


class ServiceReady(Struct, frozen=True):
    """What the process says of itself when it begins to serve."""

    url: str


OnReady = Callable[[ServiceReady], None]


class ServiceOrder(Struct, frozen=True):
    """What `cynosure up` tells its delegation service."""

    source: SettingsSource
    listener_fd: int


def run_delegation(source: SettingsSource, on_ready: OnReady = lambda _: None) -> None:
    """Serve until SIGTERM or SIGINT. Raises what kept it from starting or ending well."""
    settings = source.load()
    service = settings.delegation.service
    check_service(service)
    start_logging(settings.telemetry)
    # Order: what is wrong with the file is said before anything is made.
    read_credentials(service)
    with listen_tcp(service.host, service.port) as listener:
        _run(settings, listener, on_ready)


def run_delegation_child() -> None:
    """As `run_delegation`, as a child of `cynosure up`, which has made the listener."""
    link = SupervisorLink.find()
    order: ServiceOrder = link.read_order(ServiceOrder)
    settings = order.source.load()
    check_service(settings.delegation.service)
    start_logging(settings.telemetry)
    link.end_with_supervisor(stop_grace_s(settings))
    with socket.socket(fileno=order.listener_fd) as listener:
        _run(settings, listener, link.announce_ready)


def stop_grace_s(settings: Settings) -> float:
    """How long the process may take to stop."""
    drain_s = settings.delegation.service.drain.total_seconds()
    return settings.server.shutdown_grace.total_seconds() + drain_s + GIVE_BACK_S


def _run(settings: Settings, listener: socket.socket, on_ready: OnReady) -> None:
    prepare_data_dir(settings.server.data_dir)
    with (
        RoleLock(settings.server.data_dir, ROLE),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        # Request ids and jitter; nothing secret is drawn from it.
        rng = random.Random()  # noqa: S311
        runner.run(serve_delegation(settings, listener, clock=SystemClock(), rng=rng, on_ready=on_ready))


async def serve_delegation(
    settings: Settings,
    listener: socket.socket,
    *,
    clock: Clock,
    rng: random.Random,
    on_ready: OnReady = lambda _: None,
) -> None:
    """Serve on this socket until SIGTERM or SIGINT, and work on tasks meanwhile."""
    service = settings.delegation.service
    start_telemetry(settings)
    tls = _tls_of(service)
    url = url_of(listener, service.host, is_tls=tls is not None)
    if service.credentials_file is not None:
        await wait_for_file(service.credentials_file)
    async with AsyncExitStack() as stack:
        stack.callback(start_tracing(settings.telemetry, service="cynosure-delegation"))
        process = await stack.enter_async_context(
            open_delegation(settings, read_credentials(service), clock, rng)
        )
        http = HttpServer(http_config(process.public, settings.server.shutdown_grace.total_seconds(), tls))
        in_a_hurry = asyncio.Event()

        def stop() -> None:
            if http.should_exit:
                # A second signal means: now.
                http.force_exit = True
                in_a_hurry.set()
            process.readiness.begin_shutdown()
            http.should_exit = True

        stack.enter_context(attending(stop, tls, clock))
        serving = asyncio.create_task(http.run_until_stopped(listener))
        listening = asyncio.create_task(http.listening.wait())
        await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        _log.event("delegation.ready", url=url, realm=service.realm)
        on_ready(ServiceReady(url))
        await serving
        await _drain(process, service.drain.total_seconds(), in_a_hurry)
        _log.event("delegation.stopped", url=url)


async def _drain(process: DelegationProcess, drain_s: float, in_a_hurry: asyncio.Event) -> None:
    draining = asyncio.create_task(process.worker.close(drain_s))
    hurrying = asyncio.create_task(in_a_hurry.wait())
    try:
        await asyncio.wait({draining, hurrying}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (draining, hurrying):
            each.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await draining


def _tls_of(service: ServiceSettings) -> ServerTls | None:
    if service.certificate is None:
        return None
    return ServerTls(TlsSettings(service.certificate, service.key, service.client_ca))
