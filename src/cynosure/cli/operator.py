"""Commands that run in the server when there is one, otherwise here, with the same handler.

A maintainer must not break: while a server answers on the operator socket nothing is done in this
process, because the server may hold what the command needs (locks, caches, a single-process store).
"""

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from cynosure.cli import options
from cynosure.cli.output import print_fields, print_json, show_progress
from cynosure.common.progress import Report

if TYPE_CHECKING:
    from cynosure.server.settings import SettingsSource

T = TypeVar("T")


def run_operator_command(name: str, params: Any, result: type[T], source: "SettingsSource") -> T:
    """Run the command, show its progress, return its result."""
    import msgspec

    with show_progress() as report:
        encoded = asyncio.run(_run(name, params, source, report))
    return msgspec.json.decode(encoded, type=result)


async def _run(name: str, params: Any, source: "SettingsSource", report: Report) -> bytes:
    import random

    import msgspec

    from cynosure.cli import light as _  # noqa: F401 - before httpx
    from cynosure.client.operator import find_operator
    from cynosure.common.clock import SystemClock

    settings = source.load()
    clock = SystemClock()
    rng = random.Random()  # noqa: S311 - jitter only
    async with find_operator(settings.server.operator_socket_path, clock, rng) as operator:
        if operator is not None:
            return bytes(await operator.run(name, params, report))
    from cynosure.server.wiring import open_ground

    async with open_ground(settings, clock) as ground:
        return msgspec.json.encode(await ground.commands.get(name).run(params, report))


def status(config: options.Config = None, data: options.Data = None, as_json: options.Json = False) -> None:
    """Show what runs on a data directory. Exit code 0 when it runs and is ready, 1 otherwise."""
    from cynosure.server.operator_commands import NoParams, Status

    source = options.make_source(config, {"server.data_dir": data})
    found = run_operator_command("status", NoParams(), Status, source)
    if as_json:
        print_json(found)
    else:
        print_fields(
            {
                "server": "running" if found.is_running else "not running",
                "health": found.health if found.is_running else None,
                **{f"  {name}": reason for name, reason in found.not_ready.items()},
                "url": found.url,
                "pid": found.pid,
                "workers": found.workers,
                "uptime": None if found.uptime_s is None else f"{found.uptime_s:.0f} s",
                "data": found.data_dir,
                "store": found.store,
                "version": found.version,
            }
        )
    if not (found.is_running and found.health == "ready"):
        raise typer.Exit(1)
