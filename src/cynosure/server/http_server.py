"""HTTP servers inside one of our processes: uvicorn with our protocol, and the process' signals.

A maintainer must not break: signals are handled once in a process, however many servers it has.
"""

import asyncio
import contextlib
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from cynosure.api.app import Service
from cynosure.common.clock import Clock
from cynosure.common.telemetry.metrics import start_metrics
from cynosure.server.protocol import GuardedProtocol
from cynosure.server.settings import Settings
from cynosure.server.tls import ServerTls

KEEP_ALIVE_S = 75
"""Longer than our client keeps idle connections, so that the client closes first."""

_GOODBYE_S = 0.5
"""How long a peer has to say goodbye, at least; it may take twice as long."""


class HttpServer(uvicorn.Server):
    """uvicorn without its own ideas about signals, that tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Several servers share this process; signals are handled once (`handling`)."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets=sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, and part from those who do not say goodbye.

        Over TLS a connection that we close is gone when the peer has said so too. A client that keeps idle
        connections does not look at them, and would hold us up for half a minute.
        """
        parting = asyncio.create_task(self._part())
        try:
            await super().shutdown(sockets)
        finally:
            parting.cancel()

    async def _part(self) -> None:
        said_goodbye: set[object] = set()
        while True:
            await asyncio.sleep(_GOODBYE_S)
            closing = {
                each
                for each in self.server_state.connections
                # Whoever is still being sent an answer is given the whole grace.
                if each.transport.is_closing() and each.transport.get_write_buffer_size() == 0
            }
            for connection in closing & said_goodbye:
                connection.transport.abort()
            said_goodbye = set(closing)

    async def run_until_stopped(self, listener: socket.socket) -> None:
        """Serve; returns when the last request has ended."""
        await self.serve(sockets=[listener])
        # uvicorn cancels what outlasts the grace but does not wait for it.
        if tasks := list(self.server_state.tasks):
            await asyncio.wait(tasks, timeout=5.0)


def http_config(service: Service, grace_s: float, tls: ServerTls | None) -> uvicorn.Config:
    """How a service is served."""
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


def start_telemetry(settings: Settings, slot: int | None = None) -> None:
    """Begin to count; before the services are made. `slot`: of a worker that may have others beside it."""
    # Its starts and stops are told by our own events; what remains is trouble.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if settings.telemetry.metrics:
        is_shared = slot is not None and settings.server.workers > 1
        start_metrics(directory=settings.server.metrics_dir if is_shared else None, slot=str(slot or 0))


@contextlib.contextmanager
def attending(stop: Callable[[], None], tls: ServerTls | None, clock: Clock) -> Iterator[None]:
    """Inside the block SIGTERM and SIGINT stop; SIGHUP, and new files, renew certificates."""
    loop = asyncio.get_running_loop()
    # SIGHUP is handled in any case: its default would end the process.
    renew = tls.reload if tls is not None else lambda: None
    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGHUP: renew}
    watching = None if tls is None else asyncio.create_task(tls.watch(clock))
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()
        for number in handlers:
            loop.remove_signal_handler(number)
