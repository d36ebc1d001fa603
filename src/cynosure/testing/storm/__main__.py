"""The storm as a program: `python -m cynosure.testing.storm write | collect`."""

import argparse
import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

from cynosure.persistence.ids.snowflake import decompose
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import Backend
from cynosure.server.settings import load_settings
from cynosure.testing.storm.collecting import collect_once
from cynosure.testing.storm.faults import Faults, SelfHarming, SettableClock
from cynosure.testing.storm.ledger import Ledger, Started, now_s
from cynosure.testing.storm.writers import Storm, blow, open_storm


def main() -> None:
    """Parse and run."""
    options = _parser().parse_args()
    with suppress(asyncio.CancelledError):
        asyncio.run(_until_sigterm(_write(options) if options.command == "write" else _collect(options)))


async def _until_sigterm(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await task


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="storm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="commit until the time is over, or for ever")
    collect = commands.add_parser("collect", help="collect garbage once, as the coordinated task")
    for command in (write, collect):
        command.add_argument("--store", required=True, help="URL of the store")
        command.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
        command.add_argument("--seed", type=int, default=None)
    write.add_argument("--ledger", type=Path, required=True)
    write.add_argument("--writers", type=int, default=4)
    write.add_argument("--readers", type=int, default=1)
    write.add_argument("--items", type=int, default=8)
    write.add_argument("--payload-bytes", type=int, default=0)
    write.add_argument("--seconds", type=float, default=None, help="left out: until SIGTERM")
    write.add_argument("--keys", action="store_true", help="idempotency keys; repeat until committed")
    write.add_argument("--early-rows", action="store_true", help="write prepared objects before the swap")
    write.add_argument("--kill-after-swap", type=float, default=0.0, metavar="CHANCE")
    write.add_argument("--stop-before-swap", type=int, default=0, metavar="NUMBER")
    write.add_argument("--clock-step", type=float, default=3600.0, help="seconds that SIGUSR1 sets back")
    collect.add_argument("--stop-before-delete", type=int, default=0, metavar="NUMBER")
    collect.add_argument("--lease", type=float, default=60.0, help="seconds of the task's lease")
    return parser


def _settings(options: argparse.Namespace) -> PersistenceSettings:
    overrides = dict(each.split("=", 1) for each in options.set)
    return load_settings(environment={}, overrides=overrides).persistence


async def _write(options: argparse.Namespace) -> None:
    rng = Random(options.seed)
    faults = Faults(
        kill_after_swap=options.kill_after_swap,
        stop_before_swap=options.stop_before_swap,
        early_rows=options.early_rows,
    )
    # Seeds repeat between runs; ids of requests must not.
    name = f"{os.getpid()}-{SystemRandom().getrandbits(32):08x}"
    storm = Storm(
        name=name,
        writers=options.writers,
        readers=options.readers,
        items=options.items,
        payload_bytes=options.payload_bytes,
        has_keys=options.keys,
    )
    ledger = Ledger(options.ledger)

    def wrap(backend: Backend) -> Backend:
        return SelfHarming(backend, faults, rng) if faults != Faults() else backend

    clock = SettableClock(options.clock_step)
    async with open_storm(options.store, _settings(options), clock=clock, wrap=wrap) as persistence:
        ledger.note(Started(os.getpid(), decompose(persistence.ids.next()).node, now_s()))
        print("The storm is ready", flush=True)
        try:
            async with asyncio.timeout(options.seconds):
                await blow(persistence, ledger, storm, rng)
        except TimeoutError:
            print(f"The storm is over: {persistence.counters}", flush=True)


async def _collect(options: argparse.Namespace) -> None:
    rng = Random(options.seed)
    faults = Faults(stop_before_delete=options.stop_before_delete)

    def wrap(backend: Backend) -> Backend:
        return SelfHarming(backend, faults, rng)

    async with open_storm(options.store, _settings(options), wrap=wrap) as persistence:
        record = await collect_once(persistence, options.lease)
        print(f"The collection {record.outcome}: {record.text}", flush=True)


if __name__ == "__main__":
    main()
