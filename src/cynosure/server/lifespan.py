"""The life of one serving process: open, listen, announce, serve, finish what was begun, close.

A maintainer must not break: nothing is closed while a request still uses it. Requests in work get
`shutdown_grace`; what is left is cancelled and waited for before the store closes.
"""

import asyncio
import gc
import random
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.telemetry.logs import Log
from cynosure.common.telemetry.tracing import start_tracing
from cynosure.server.http_server import HttpServer, attending, http_config, start_telemetry
from cynosure.server.listen import listen_operator, url_of
from cynosure.server.operator_commands import Running
from cynosure.server.settings import Settings
from cynosure.server.tls import ServerTls
from cynosure.server.wiring import open_catalog

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
    start_telemetry(settings, slot)
    tls = ServerTls(server.tls) if server.tls.certificate is not None else None
    url = url_of(listener, server.host, is_tls=tls is not None)
    async with AsyncExitStack() as stack:
        stack.callback(start_tracing(settings.telemetry, service="cynosure-catalog"))
        running = Running(url, server.workers, clock.monotonic_s())
        process = await stack.enter_async_context(open_catalog(settings, clock, rng, running))
        grace_s = server.shutdown_grace.total_seconds()
        listeners = {HttpServer(http_config(process.public, grace_s, tls)): listener}
        if slot == 0:
            operator = stack.enter_context(listen_operator(server.operator_socket_path))
            listeners[HttpServer(http_config(process.operator, grace_s, None))] = operator

        def stop() -> None:
            process.readiness.begin_shutdown()
            for http in listeners:
                # A second signal means: now.
                http.force_exit = http.should_exit
                http.should_exit = True

        stack.enter_context(attending(stop, tls, clock))
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
