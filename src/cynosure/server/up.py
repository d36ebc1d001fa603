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
from cynosure.server.up_delegation import choose_port, find_reason_against, prepare_delegation

DELEGATION = "delegation"
_PREDECESSOR_S = 90.0
"""Services whose `up` was killed end by themselves within their grace; a new `up` waits for them."""


class _ServiceOrder(msgspec.Struct, frozen=True):
    """As `delegation.ServiceOrder`, which would import all that the service is made of."""

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
        for role in (CATALOG, DELEGATION):
            _wait_for_predecessor(data_dir, role, on_wait)
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
    reason = find_reason_against(settings)
    if reason is not None:
        on_note(f"No delegation service is started: {reason}.")
        return [_catalog(source)]
    port = choose_port(settings)
    given = prepare_delegation(settings, port)
    stack.enter_context(given.listener)
    fd = given.listener.fileno()
    return [
        _catalog(_with(source, {**given.for_catalog, "server.port": port})),
        ChildSpec(
            name=DELEGATION,
            argv=(sys.executable, "-m", "cynosure.server.delegation_child"),
            order=_ServiceOrder(_with(source, given.for_service), fd),
            pass_fds=(fd,),
        ),
    ]


def _catalog(source: SettingsSource) -> ChildSpec:
    return ChildSpec(name=CATALOG, argv=(sys.executable, "-m", "cynosure.server.catalog"), order=source)


def _with(source: SettingsSource, overrides: Mapping[str, Any]) -> SettingsSource:
    return msgspec.structs.replace(source, overrides={**source.overrides, **overrides})


def _stop_grace_s(settings: Settings) -> float:
    # As `delegation.stop_grace_s`, and a little longer.
    drain_s = settings.delegation.service.drain.total_seconds()
    return settings.server.shutdown_grace.total_seconds() + drain_s + 25.0


def _wait_for_predecessor(data_dir: Path, role: str, on_wait: Callable[[str, int], None]) -> None:
    lock = RoleLock(data_dir, role)
    give_up_s = time.monotonic() + _PREDECESSOR_S
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
