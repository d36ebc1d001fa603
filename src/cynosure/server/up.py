"""`cynosure up`: the enabled services as child processes on one data directory.

A maintainer must not break: two of these never run on one directory, and none of the services outlives it.
"""

import asyncio
import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from cynosure.common.clock import SystemClock
from cynosure.common.telemetry.logs import start_logging
from cynosure.server.data_dir import RoleLock, prepare_data_dir
from cynosure.server.first_catalog import FIRST
from cynosure.server.run import ROLE as CATALOG
from cynosure.server.settings import Settings, SettingsSource
from cynosure.server.supervisor import ChildSpec, RestartPolicy, Supervisor
from cynosure.server.up_delegation import find_reason_against, prepare_delegation
from cynosure.server.up_gateway import find_reason_against_gateway, prepare_gateway
from cynosure.server.up_service import UpService, choose_port

DELEGATION = "delegation"
GATEWAY = "gateway"
_LEAST_PATIENCE_S = 90.0
"""The grace of a predecessor may have been longer than that of the settings now."""


class _ServiceOrder(msgspec.Struct, frozen=True):
    """As `service_process.ServiceOrder`, which would import all that services are made of."""

    source: SettingsSource
    listener_fd: int


def run_up(
    source: SettingsSource,
    *,
    on_wait: Callable[[str, int], None],
    on_ready: Callable[[Mapping[str, Any]], None],
    on_note: Callable[[str], None] = lambda _: None,
) -> None:
    """Start the services, keep them alive, stop them on SIGTERM or SIGINT."""
    settings = source.load()
    if settings.catalog.first is None:
        source = _with(source, {"catalog.first": FIRST})
    start_logging(settings.telemetry)
    data_dir = settings.server.data_dir
    prepare_data_dir(data_dir)
    with RoleLock(data_dir, "up"), ExitStack() as stack:
        for role in (CATALOG, DELEGATION, GATEWAY):
            _wait_for_predecessor(data_dir, role, on_wait, choose_patience_s(settings))
        supervisor = Supervisor(
            _list_children(source, settings, stack, on_note),
            clock=SystemClock(),
            rng=random.Random(),  # noqa: S311 - jitter only
            policy=RestartPolicy(stop_grace_s=_stop_grace_s(settings)),
            on_ready=on_ready,
        )
        asyncio.run(supervisor.run())


def _list_children(
    source: SettingsSource, settings: Settings, stack: ExitStack, on_note: Callable[[str], None]
) -> list[ChildSpec]:
    port = choose_port(settings)
    services: dict[str, UpService] = {}
    if (reason := find_reason_against(settings)) is not None:
        on_note(f"No delegation service is started: {reason}.")
    else:
        services[DELEGATION] = prepare_delegation(settings, port)
    if (reason := find_reason_against_gateway(settings)) is not None:
        on_note(f"No gateway for SQL is started: {reason}.")
    else:
        services[GATEWAY] = prepare_gateway(settings, port)
    if not services:
        return [_catalog(source)]
    for_catalog: dict[str, Any] = {"server.port": port}
    children = []
    for name, given in services.items():
        stack.enter_context(given.listener)
        fd = given.listener.fileno()
        for_catalog |= given.for_catalog
        children.append(
            ChildSpec(
                name=name,
                argv=(sys.executable, "-m", f"cynosure.server.{name}_child"),
                order=_ServiceOrder(_with(source, given.for_service), fd),
                pass_fds=(fd,),
            )
        )
    return [_catalog(_with(source, for_catalog)), *children]


def _catalog(source: SettingsSource) -> ChildSpec:
    return ChildSpec(
        name=CATALOG,
        argv=(sys.executable, "-m", "cynosure.server.catalog"),
        order=source,
        # Statements and tasks that others finish on their way out are recorded here.
        is_last=True,
    )


def _with(source: SettingsSource, overrides: Mapping[str, Any]) -> SettingsSource:
    return msgspec.structs.replace(source, overrides={**source.overrides, **overrides})


def _stop_grace_s(settings: Settings) -> float:
    # As `ServiceRole.stop_grace_s` of both, and a little longer.
    drains = (settings.delegation.service.drain, settings.query.gateway.drain)
    drain_s = max(each.total_seconds() for each in drains)
    return settings.server.shutdown_grace.total_seconds() + drain_s + 25.0


def choose_patience_s(settings: Settings) -> float:
    """How long to wait for services whose `up` was killed: they end by themselves within their grace."""
    return max(_LEAST_PATIENCE_S, _stop_grace_s(settings))


def _wait_for_predecessor(
    data_dir: Path, role: str, on_wait: Callable[[str, int], None], patience_s: float
) -> None:
    lock = RoleLock(data_dir, role)
    give_up_s = time.monotonic() + patience_s
    is_told = False
    while (pid := lock.find_holder()) is not None:
        if not is_told:
            on_wait(role, pid)
            is_told = True
        if time.monotonic() > give_up_s:
            lock.acquire()  # refuses, and names the holder
            lock.release()
            return
        time.sleep(0.1)
