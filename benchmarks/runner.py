"""Run a suite: interleaved rounds of its candidates, medians per operation.

    ./dev bench                         list the suites
    ./dev bench NAME [--rounds N] [--only CANDIDATE] [--set NAME=VALUE] [--target NAME=URL] [--save]

A maintainer must not break: candidates run in interleaved rounds and never one after the other; and only
at least five measured rounds may be saved, or as many as a suite says of which one round takes minutes.
"""

import argparse
import asyncio
import importlib
import pkgutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import cast

import uvloop

import benchmarks.suites
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise
from benchmarks.results_file import ROOT, Result, make_result, save, summarize
from benchmarks.tables import readable, show

OpenCandidates = Callable[[Options], AbstractAsyncContextManager[Mapping[str, Round]]]

LEAST_ROUNDS_TO_SAVE = 5


def list_suites() -> dict[str, str]:
    """Names of all suites with the first line of what they say about themselves."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.suites.__path__)]
    return {name: (_import_suite(name).__doc__ or "").partition("\n")[0] for name in sorted(names)}


async def run_suite(
    name: str, options: Options, *, rounds: int, warmups: int = 1, only: Sequence[str] = ()
) -> Result:
    """Measure a suite. The first `warmups` rounds are run and forgotten."""
    opened: OpenCandidates = _import_suite(name).open_candidates
    measured: dict[str, list[Figures]] = {}
    async with opened(options) as candidates:
        if options.unused:
            sys.exit(
                f"bench: {name} has no option {', '.join(options.unused)}; it has {', '.join(options.used)}"
            )
        unknown = sorted(set(only) - set(candidates))
        if unknown:
            sys.exit(f"bench: {name} has no candidate {', '.join(unknown)}; it has {', '.join(candidates)}")
        chosen = [candidate for candidate in candidates if not only or candidate in only]
        async for candidate, number in _in_turns(chosen, rounds + warmups):
            meter = Meter()
            await candidates[candidate](meter)
            if number >= warmups:
                measured.setdefault(candidate, []).append(meter.figures())
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return make_result(name, options.used, {candidate: measured[candidate] for candidate in chosen})


async def _in_turns(candidates: Sequence[str], rounds: int) -> AsyncIterator[tuple[str, int]]:
    for number in range(rounds):
        # Nobody always runs first, when caches are cold, nor always after the same neighbour.
        turn = number % len(candidates)
        for candidate in [*candidates[turn:], *candidates[:turn]]:
            yield candidate, number


def print_result(result: Result) -> None:
    """The table of one run."""
    commit = result.commit[:10] + (" with changes" if result.is_modified else "")
    options = " ".join(f"{name}={value}" for name, value in result.options.items())
    rounds = min(len(figures) for figures in result.candidates.values())
    machine = result.machine
    title = (
        f"{result.suite} {options} · {result.date[:10]} · commit {commit}"
        f"\nmedian of {rounds} rounds, per operation · {machine.cores} cores {machine.cpu}"
        f"\n{machine.system}, Python {machine.python}"
    )
    rows = {
        candidate: {column: readable(value) for column, value in summarize(figures).items()}
        for candidate, figures in result.candidates.items()
    }
    show(title, "candidate", rows)


def _no_promises(result: Result) -> list[Promise]:
    return []


def _find_least_rounds(suite: str, given: Mapping[str, str]) -> int:
    find: Callable[[Mapping[str, str]], int | None] | None
    find = getattr(_import_suite(suite), "least_rounds_to_save", None)
    return (find(given) if find is not None else None) or LEAST_ROUNDS_TO_SAVE


def _import_suite(name: str) -> "_SuiteModule":
    return cast("_SuiteModule", importlib.import_module(f"benchmarks.suites.{name}"))


class _SuiteModule:
    """The shape of a module in `benchmarks.suites`."""

    open_candidates: OpenCandidates


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `./dev bench`."""
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure one suite.")
    parser.add_argument("suite", nargs="?", help="which suite; without it, all are listed")
    parser.add_argument(
        "--rounds", type=int, default=LEAST_ROUNDS_TO_SAVE, help="measured rounds (default 5)"
    )
    parser.add_argument("--warmups", type=int, default=1, help="rounds that are run first and not measured")
    parser.add_argument("--only", action="append", default=[], metavar="CANDIDATE", help="may be repeated")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the suite"
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME=URL",
        help="a server beside ours",
    )
    parser.add_argument("--save", action="store_true", help="store the result in benchmarks/results")
    asked = parser.parse_args(arguments)

    suites = list_suites()
    if asked.suite is None:
        show(
            "Suites, run with ./dev bench NAME",
            "name",
            {name: {"measures": doc} for name, doc in suites.items()},
        )
        return
    if asked.suite not in suites:
        parser.error(f"no suite {asked.suite!r}; there are: {', '.join(suites)}")
    given = dict(pair.split("=", 1) for pair in asked.set)
    least = _find_least_rounds(asked.suite, given)
    if asked.save and asked.rounds < least:
        parser.error(f"--save needs at least {least} rounds")
    if asked.target:
        given["targets"] = ",".join(asked.target)
    options = Options(given)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(
            run_suite(asked.suite, options, rounds=asked.rounds, warmups=asked.warmups, only=asked.only)
        )
    print_result(result)
    for promise in getattr(_import_suite(asked.suite), "promises", _no_promises)(result):
        print(promise)
    if asked.save:
        print(f"saved: {save(result).relative_to(Path(ROOT))}")


if __name__ == "__main__":
    main()
