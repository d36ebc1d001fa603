"""The operator commands that every service has: `ping` and `status`."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from cynosure import __version__
from cynosure.api.health import Readiness
from cynosure.api.operator import OperatorCommand
from cynosure.common.clock import Clock
from cynosure.common.progress import Report


class NoParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For commands that need none."""


class Pong(Struct, frozen=True):
    """The answer to `ping`."""

    pid: int
    version: str


class Status(Struct, frozen=True):
    """What runs on a data directory, and how it is."""

    is_running: bool
    """False when the command line answers for itself because no server does."""
    version: str
    data_dir: str
    store: str
    """Kind of the store; its URL may hold a password."""
    pid: int | None = None
    url: str | None = None
    workers: int | None = None
    uptime_s: float | None = None
    health: str | None = None
    """`ready` or `not ready`."""
    not_ready: dict[str, str] = {}


class Running(Struct, frozen=True):
    """What a serving process knows about itself."""

    url: str
    workers: int
    started_s: float
    """Monotonic."""


def service_commands(
    clock: Clock, readiness: Readiness, *, data_dir: Path, store: str, running: Running | None
) -> list[OperatorCommand[NoParams]]:
    """`ping` and `status`; `running` is `None` in a process that serves nothing."""
    where = str(data_dir.absolute())

    async def ping(params: NoParams, report: Report) -> Pong:
        return Pong(os.getpid(), __version__)

    async def status(params: NoParams, report: Report) -> Status:
        health = await readiness.load()
        known = Status(
            is_running=running is not None,
            version=__version__,
            data_dir=where,
            store=store,
            health=health.status,
            not_ready=health.not_ready,
        )
        if running is None:
            return known
        return msgspec.structs.replace(
            known,
            pid=os.getpid(),
            url=running.url,
            workers=running.workers,
            uptime_s=round(clock.monotonic_s() - running.started_s, 3),
        )

    return [
        OperatorCommand("ping", NoParams, ping, "Whether the server answers"),
        OperatorCommand("status", NoParams, status, "What runs here and how it is"),
    ]
