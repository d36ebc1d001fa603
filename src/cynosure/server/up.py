"""`cynosure up`: the enabled services as child processes on one data directory.

A maintainer must not break: two of these never run on one directory, and none of the services outlives it.
"""

import asyncio
import random
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from cynosure.common.clock import SystemClock
from cynosure.common.telemetry.logs import start_logging
from cynosure.server.data_dir import RoleLock, prepare_data_dir
from cynosure.server.first_catalog import FIRST
from cynosure.server.run import ROLE as CATALOG
from cynosure.server.settings import SettingsSource
from cynosure.server.supervisor import ChildSpec, RestartPolicy, Supervisor

_PREDECESSOR_S = 45.0
"""A catalog whose `up` was killed ends by itself within its grace; a new `up` waits that long for it."""


def run_up(
    source: SettingsSource,
    *,
    on_wait: Callable[[str, int], None],
    on_ready: Callable[[Mapping[str, Any]], None],
) -> None:
    """Start the services, keep them alive, stop them on SIGTERM or SIGINT."""
    settings = source.load()
    if settings.catalog.first is None:
        source = msgspec.structs.replace(source, overrides={**source.overrides, "catalog.first": FIRST})
    start_logging(settings.telemetry)
    data_dir = settings.server.data_dir
    prepare_data_dir(data_dir)
    with RoleLock(data_dir, "up"):
        _wait_for_predecessor(data_dir, on_wait)
        catalog = ChildSpec(
            name=CATALOG,
            argv=(sys.executable, "-m", "cynosure.server.catalog"),
            order=source,
        )
        policy = RestartPolicy(stop_grace_s=settings.server.shutdown_grace.total_seconds() + 15.0)
        supervisor = Supervisor(
            [catalog],
            clock=SystemClock(),
            rng=random.Random(),  # noqa: S311 - jitter only
            policy=policy,
            on_ready=on_ready,
        )
        asyncio.run(supervisor.run())


def _wait_for_predecessor(data_dir: Path, on_wait: Callable[[str, int], None]) -> None:
    lock = RoleLock(data_dir, CATALOG)
    give_up_s = time.monotonic() + _PREDECESSOR_S
    is_told = False
    while (pid := lock.find_holder()) is not None:
        if not is_told:
            on_wait(CATALOG, pid)
            is_told = True
        if time.monotonic() > give_up_s:
            lock.acquire()  # refuses, and names the holder
            lock.release()
            return
        time.sleep(0.1)
