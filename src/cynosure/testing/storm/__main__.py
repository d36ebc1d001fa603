"""The storm as a program: `python -m cynosure.testing.storm write | hail | collect`."""

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
from cynosure.testing.storm.hail import Hail
from cynosure.testing.storm.ledger import Ledger, Started, now_s
from cynosure.testing.storm.writers import Storm, blow, open_storm


def main() -> None:
    """Parse and run."""
    options = _parser().parse_args()
    match options.command:
        case "write":
            _run(_write(options))
        case "hail":
            _hail(options)
        case "collect":
            _run(_collect(options))


def _run(work: Coroutine[Any, Any, None]) -> None:
    async def until_sigterm() -> None:
        task = asyncio.ensure_future(work)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await task

    with suppress(asyncio.CancelledError):
        asyncio.run(until_sigterm())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="storm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="commit until the time is over, or for ever")
    hail = commands.add_parser("hail", help="write from several processes that are killed again and again")
    collect = commands.add_parser("collect", help="collect garbage once, as the coordinated task")
    for command in (write, hail, collect):
        command.add_argument("--store", required=True, help="URL of the store")
        command.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE")
        command.add_argument("--seed", type=int, default=None)
    for command in (write, hail):
        command.add_argument("--writers", type=int, default=4)
        command.add_argument("--readers", type=int, default=1)
        command.add_argument("--items", type=int, default=8)
        command.add_argument("--payload-bytes", type=int, default=0)
        command.add_argument("--keys", action="store_true", help="idempotency keys; repeat until committed")
        command.add_argument("--early-rows", action="store_true", help="write objects before the swap")
        command.add_argument("--kill-after-swap", type=float, default=0.0, metavar="CHANCE")
    write.add_argument("--ledger", type=Path, required=True)
    write.add_argument("--seconds", type=float, default=None, help="left out: until SIGTERM")
    write.add_argument("--stop-before-swap", type=int, default=0, metavar="NUMBER")
    write.add_argument("--clock-step", type=float, default=3600.0, help="seconds that SIGUSR1 sets back")
    hail.add_argument("--ledger", type=Path, action="append", required=True, help="one per process")
    hail.add_argument("--rounds", type=int, required=True, help="how often to kill")
    hail.set_defaults(seconds=None, stop_before_swap=0, clock_step=0.0)
    collect.add_argument("--stop-before-delete", type=int, default=0, metavar="NUMBER")
    collect.add_argument("--lease", type=float, default=60.0, help="seconds of the task's lease")
    return parser


def _hail(options: argparse.Namespace) -> None:
    def run_writer(ledger: Path, seed: int) -> None:
        _run(_write(argparse.Namespace(**{**vars(options), "ledger": ledger, "seed": seed})))

    hail = Hail(run_writer, options.ledger, Random(options.seed))
    if options.kill_after_swap:
        hail.watch(options.rounds)
    else:
        hail.strike(options.rounds)


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
