"""The life of one serving process: open, listen, announce, serve, finish what was begun, close.

A maintainer must not break: nothing is closed while a request still uses it. Requests in work get
`shutdown_grace`; what is left is cancelled and waited for before the store closes.
"""

import asyncio
import contextlib
import gc
import logging
import math
import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

import uvicorn
from msgspec import Struct

from cynosure.api.app import Service
from cynosure.common.clock import Clock
from cynosure.common.telemetry.logs import Log
from cynosure.common.telemetry.metrics import start_metrics
from cynosure.common.telemetry.tracing import start_tracing
from cynosure.server.listen import listen_operator, url_of
from cynosure.server.operator_commands import Running
from cynosure.server.protocol import GuardedProtocol
from cynosure.server.settings import Settings
from cynosure.server.tls import ServerTls
from cynosure.server.wiring import open_catalog

KEEP_ALIVE_S = 75
"""Longer than our client keeps idle connections, so that the client closes first."""

_YOUNG_OBJECTS = 5_000
"""New objects after which the garbage collector looks at them. Requests leave no cycles, so hardly any are
garbage by then; and what commits leave in the caches was looked through again and again (measured: with
Python's 700 it took 90 µs of a commit and stopped all for up to 48 ms; with this, 20 µs and 33 ms)."""

_log = Log(__name__)


class Ready(Struct, frozen=True):
    """What a process says of itself when it begins to serve."""

    url: str
    catalogs: tuple[str, ...] = ()
    """Names of the first few."""


class HttpServer(uvicorn.Server):
    """uvicorn without its own ideas about signals, that tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Several servers share this process; signals are handled once, in `serve_catalog`."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets=sockets)
        self.listening.set()

    async def run_until_stopped(self, listener: socket.socket) -> None:
        """Serve; returns when the last request has ended."""
        await self.serve(sockets=[listener])
        # uvicorn cancels what outlasts the grace but does not wait for it.
        if tasks := list(self.server_state.tasks):
            await asyncio.wait(tasks, timeout=5.0)


async def serve_catalog(
    settings: Settings,
    listener: socket.socket,
    *,
    clock: Clock,
    rng: random.Random,
    slot: int = 0,
    on_ready: Callable[[Ready], None] = lambda _: None,
) -> None:
    """Serve on this socket until SIGTERM or SIGINT. Slot 0 of the workers serves the operator socket too."""
    server = settings.server
    _start_telemetry(settings, slot)
    tls = ServerTls(server.tls) if server.tls.certificate is not None else None
    url = url_of(listener, server.host, is_tls=tls is not None)
    async with AsyncExitStack() as stack:
        stack.callback(start_tracing(settings.telemetry, service="cynosure-catalog"))
        running = Running(url, server.workers, clock.monotonic_s())
        process = await stack.enter_async_context(open_catalog(settings, clock, rng, running))
        grace_s = server.shutdown_grace.total_seconds()
        listeners = {HttpServer(_config(process.public, grace_s, tls)): listener}
        if slot == 0:
            operator = stack.enter_context(listen_operator(server.operator_socket_path))
            listeners[HttpServer(_config(process.operator, grace_s, None))] = operator

        def stop() -> None:
            process.readiness.begin_shutdown()
            for http in listeners:
                # A second signal means: now.
                http.force_exit = http.should_exit
                http.should_exit = True

        # SIGHUP is handled in any case: its default would end the process.
        renew = tls.reload if tls is not None else lambda: None
        stack.enter_context(_signals({signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: renew}))
        if tls is not None:
            watching = asyncio.create_task(tls.watch(clock))
            stack.callback(watching.cancel)
        # What start-up made stays until the end. Left out of the garbage collector's full collections, it no
        # longer stops every request for the 20 ms that looking through it takes (measured).
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
        async with asyncio.TaskGroup() as group:
            for http, socket_ in listeners.items():
                group.create_task(http.run_until_stopped(socket_))
            for http in listeners:
                await http.listening.wait()
            _log.event("server.ready", url=url, slot=slot)
            on_ready(Ready(url, process.catalogs))
        _log.event("server.stopped", url=url, slot=slot)


def _config(service: Service, grace_s: float, tls: ServerTls | None) -> uvicorn.Config:
    return uvicorn.Config(
        service.app,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=math.ceil(grace_s),
        ssl_context_factory=None if tls is None else lambda config, default: tls.context,
    )


def _start_telemetry(settings: Settings, slot: int) -> None:
    # Its starts and stops are told by our own events; what remains is trouble.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if settings.telemetry.metrics:
        shared = settings.server.metrics_dir if settings.server.workers > 1 else None
        start_metrics(directory=shared, slot=str(slot))


@contextlib.contextmanager
def _signals(handlers: dict[signal.Signals, Callable[[], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
