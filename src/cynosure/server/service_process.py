"""What processes of services beside the catalog have in common: their start, their HTTP, their end.

A maintainer must not break: the lock on the data directory is held for as long as the service may act under
its name; the first signal begins an orderly end, the second one means now.
"""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import uvloop
from msgspec import Struct

from cynosure.api.app import Service
from cynosure.client.tokens import ClientCredentials
from cynosure.common.clock import Clock, SystemClock
from cynosure.common.telemetry.logs import Log, start_logging
from cynosure.common.telemetry.tracing import start_tracing
from cynosure.server.data_dir import RoleLock, prepare_data_dir
from cynosure.server.http_server import HttpServer, http_config, start_telemetry
from cynosure.server.link import SupervisorLink
from cynosure.server.listen import listen_tcp, url_of
from cynosure.server.safe_settings import OwnPrincipal
from cynosure.server.service_credentials import read_credentials, wait_for_file
from cynosure.server.settings import Settings, SettingsSource, TlsSettings
from cynosure.server.tls import ServerTls

_log = Log(__name__)


class ServiceReady(Struct, frozen=True):
    """What a process says of itself when it begins to serve."""

    url: str


OnReady = Callable[[ServiceReady], None]


class ServiceOrder(Struct, frozen=True):
    """What `cynosure up` tells a service."""

    source: SettingsSource
    listener_fd: int


class ServiceSettings(OwnPrincipal, Protocol):
    """Where a service listens, and its principal."""

    @property
    def host(self) -> str: ...  # noqa: D102
    @property
    def port(self) -> int: ...  # noqa: D102
    @property
    def certificate(self) -> Path | None: ...  # noqa: D102
    @property
    def key(self) -> Path | None: ...  # noqa: D102
    @property
    def drain(self) -> timedelta: ...  # noqa: D102


class ServiceStart(NamedTuple):
    """What a process begins with."""

    settings: Settings
    listener: socket.socket
    url: str
    tls: ServerTls | None
    credentials: ClientCredentials
    clock: Clock
    rng: random.Random
    on_ready: OnReady

    def make_http(self, public: Service) -> "ServiceHttp":
        """The HTTP server of this process; it does not serve yet."""
        return ServiceHttp(public, self.settings.server.shutdown_grace.total_seconds(), self.tls)


class ServiceRole(NamedTuple):
    """What tells one service from another."""

    name: str
    """Of its lock on the data directory, and of what it tells of itself."""
    check: Callable[[Settings], None]
    """Refuses settings that it must not serve with."""
    own: Callable[[Settings], ServiceSettings]
    end_s: float
    """How long the process may take to end after its drain."""
    serve: Callable[[ServiceStart], Coroutine[Any, Any, None]]
    """Serves on the socket until SIGTERM or SIGINT."""
    client_ca: Callable[[Settings], Path | None] = lambda _: None
    """Whose certificates clients must have."""

    def stop_grace_s(self, settings: Settings) -> float:
        """How long the process may take to stop."""
        drain_s = self.own(settings).drain.total_seconds()
        return settings.server.shutdown_grace.total_seconds() + drain_s + self.end_s


def run_service(role: ServiceRole, source: SettingsSource, on_ready: OnReady) -> None:
    """Serve until SIGTERM or SIGINT. Raises what kept it from starting or ending well."""
    settings = source.load()
    own = role.own(settings)
    role.check(settings)
    start_logging(settings.telemetry)
    # Order: what is wrong with the file is said before anything is made.
    read_credentials(own)
    with listen_tcp(own.host, own.port) as listener:
        _run(role, settings, listener, on_ready)


def run_service_child(role: ServiceRole) -> None:
    """As `run_service`, as a child of `cynosure up`, which has made the listener."""
    link = SupervisorLink.find()
    order: ServiceOrder = link.read_order(ServiceOrder)
    settings = order.source.load()
    role.check(settings)
    start_logging(settings.telemetry)
    link.end_with_supervisor(role.stop_grace_s(settings))
    with socket.socket(fileno=order.listener_fd) as listener:
        _run(role, settings, listener, link.announce_ready)


def _run(role: ServiceRole, settings: Settings, listener: socket.socket, on_ready: OnReady) -> None:
    prepare_data_dir(settings.server.data_dir)
    # Request ids and jitter; nothing secret is drawn from it.
    rng = random.Random()  # noqa: S311
    with (
        RoleLock(settings.server.data_dir, role.name),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(role, settings, listener, SystemClock(), rng, on_ready))


async def _serve(
    role: ServiceRole,
    settings: Settings,
    listener: socket.socket,
    clock: Clock,
    rng: random.Random,
    on_ready: OnReady,
) -> None:
    own = role.own(settings)
    start_telemetry(settings)
    tls = _find_tls(own, role.client_ca(settings))
    url = url_of(listener, own.host, is_tls=tls is not None)
    if own.credentials_file is not None:
        await wait_for_file(own.credentials_file)
    with contextlib.ExitStack() as stack:
        stack.callback(start_tracing(settings.telemetry, service=f"cynosure-{role.name}"))
        credentials = read_credentials(own)
        await role.serve(ServiceStart(settings, listener, url, tls, credentials, clock, rng, on_ready))
        _log.event(f"{role.name}.stopped", url=url)


def _find_tls(own: ServiceSettings, client_ca: Path | None) -> ServerTls | None:
    return None if own.certificate is None else ServerTls(TlsSettings(own.certificate, own.key, client_ca))


class ServiceHttp:
    """The HTTP server of a process, and how it was told to end."""

    def __init__(self, public: Service, grace_s: float, tls: ServerTls | None) -> None:
        self._http = HttpServer(http_config(public, grace_s, tls))
        self._serving: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()
        """Set by the first signal."""
        self.in_a_hurry = asyncio.Event()
        """Set by the second."""

    def note_signal(self) -> None:
        """For the process' signals."""
        if self.stopping.is_set():
            self._http.force_exit = True
            self.in_a_hurry.set()
        self.stopping.set()

    async def start(self, listener: socket.socket) -> None:
        """Begin to serve; returns when it listens, or cannot."""
        self._serving = asyncio.create_task(self._http.run_until_stopped(listener))
        listening = asyncio.create_task(self._http.listening.wait())
        await asyncio.wait({self._serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()

    def stop_serving(self) -> None:
        """Take no more requests."""
        self._http.should_exit = True

    async def wait_stopped(self) -> None:
        """Until the last request has ended."""
        if self._serving is not None:
            await self._serving

    async def within_patience(self, draining: Coroutine[Any, Any, None]) -> None:
        """Wait for this to end, unless somebody is in a hurry: then it is cancelled."""
        task = asyncio.create_task(draining)
        hurrying = asyncio.create_task(self.in_a_hurry.wait())
        try:
            await asyncio.wait({task, hurrying}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (task, hurrying):
                each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
