"""`serve catalog`: one process, or one parent with several workers on a shared socket.

A maintainer must not break: the parent of workers opens no store and serves nothing; it binds, starts,
watches and stops.
"""

import asyncio
import contextlib
import random
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
import uvloop
from msgspec import Struct

from cynosure.common.clock import SystemClock
from cynosure.common.telemetry.logs import WARNING, Log, start_logging
from cynosure.common.telemetry.metrics import forget_worker, prepare_directory
from cynosure.server.data_dir import RoleLock, prepare_data_dir
from cynosure.server.lifespan import Ready, serve_catalog
from cynosure.server.link import SupervisorLink
from cynosure.server.listen import is_private, listen_tcp
from cynosure.server.settings import Settings, SettingsSource
from cynosure.server.supervisor import ChildSpec, RestartPolicy, Supervisor

ROLE = "catalog"
_USE_TLS = "Tokens and secrets cross the network in clear. Set server.tls, or put a TLS proxy in front."

_log = Log(__name__)

OnReady = Callable[[Ready], None]


class WorkerOrder(Struct, frozen=True):
    """What a parent tells a worker, through the line: flags may hold secrets, command lines are public."""

    source: SettingsSource
    slot: int
    listener_fd: int


def run_catalog(source: SettingsSource, on_ready: OnReady = lambda _: None) -> None:
    """Serve the catalog until SIGTERM or SIGINT. Raises what kept it from starting or ending well."""
    _run_catalog(source, on_ready, link=None)


def run_catalog_child() -> None:
    """As `run_catalog`, as a child of `cynosure up`: reads where its settings are from the line."""
    link = SupervisorLink.find()
    _run_catalog(link.read_order(SettingsSource), link.announce_ready, link)


def _run_catalog(source: SettingsSource, on_ready: OnReady, link: SupervisorLink | None) -> None:
    settings = source.load()
    start_logging(settings.telemetry)
    grace_s = settings.server.shutdown_grace.total_seconds() + 10.0
    if link is not None:
        link.end_with_supervisor(grace_s)
    server = settings.server
    prepare_data_dir(server.data_dir)
    with contextlib.ExitStack() as stack:
        stack.enter_context(RoleLock(server.data_dir, ROLE))
        listener = stack.enter_context(listen_tcp(server.host, server.port))
        if server.tls.certificate is None and not is_private(server.host):
            _log.event("server.plain_http", level=WARNING, host=server.host, fix=_USE_TLS)
        if server.workers == 1:
            _run(serve_catalog(settings, listener, clock=SystemClock(), rng=_new_rng(), on_ready=on_ready))
        else:
            asyncio.run(_supervise(source, settings, listener, on_ready, grace_s))


def run_worker() -> None:
    """Entry of a worker process: reads its order from the line and serves."""
    link = SupervisorLink.find()
    order: WorkerOrder = link.read_order(WorkerOrder)
    settings = order.source.load()
    start_logging(settings.telemetry)
    link.end_with_supervisor(settings.server.shutdown_grace.total_seconds() + 5.0)
    with socket.socket(fileno=order.listener_fd) as listener:
        _run(
            serve_catalog(
                settings,
                listener,
                clock=SystemClock(),
                rng=_new_rng(),
                slot=order.slot,
                on_ready=link.announce_ready,
            )
        )


async def _supervise(
    source: SettingsSource,
    settings: Settings,
    listener: socket.socket,
    on_ready: OnReady,
    grace_s: float,
) -> None:
    metrics_dir = settings.server.metrics_dir
    prepare_directory(metrics_dir)
    workers = [
        ChildSpec(
            name=f"worker-{slot}",
            argv=(sys.executable, "-m", "cynosure.server.worker"),
            order=WorkerOrder(source, slot, listener.fileno()),
            pass_fds=(listener.fileno(),),
            on_exit=partial(forget_worker, metrics_dir, str(slot)),
        )
        for slot in range(settings.server.workers)
    ]
    policy = RestartPolicy(stop_grace_s=grace_s)

    def announce(ready: Mapping[str, Any]) -> None:
        # They share one socket and one store: what the first one says holds for all.
        on_ready(msgspec.convert(ready[workers[0].name], Ready))

    await Supervisor(workers, clock=SystemClock(), rng=_new_rng(), policy=policy, on_ready=announce).run()


def _new_rng() -> random.Random:
    # Request ids and jitter; nothing secret is drawn from it.
    return random.Random()  # noqa: S311


def _run(serving: Any) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serving)
