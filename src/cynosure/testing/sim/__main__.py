"""`python -m cynosure.testing.sim N`: run N seeds and say what they met; exit 1 when one breaks a rule."""

import argparse
import logging
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from random import SystemRandom

from cynosure.testing.sim.verdict import Verdict, judge, judge_keyed
from cynosure.testing.sim.weather import draw_keyed_weather, draw_weather
from cynosure.testing.sim.world import run_seed, seeded


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m cynosure.testing.sim", description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=1, help="how many seeds to run")
    parser.add_argument("--seed", type=int, help="run this seed only, and print its whole log")
    parser.add_argument("--start", type=int, help="first seed; drawn at random when left out")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--keyed", action="store_true", help="runs with Idempotency-Keys")
    parser.add_argument("--verbose", action="store_true", help="one line per run")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _run_one(options.seed, is_keyed=options.keyed)
    run_one = judge_keyed if options.keyed else judge
    start = options.start if options.start is not None else SystemRandom().randrange(10**9)
    seeds = range(start, start + options.runs)
    started_s = time.monotonic()
    show = partial(_summarize, is_verbose=options.verbose, is_keyed=options.keyed)
    if options.jobs <= 1:
        failed, totals = show(map(run_one, seeds))
    else:
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            failed, totals = show(pool.map(run_one, seeds, chunksize=4))
    elapsed_s = time.monotonic() - started_s
    rate = len(seeds) / max(elapsed_s, 1e-9)
    print(f"seeds {start} to {start + options.runs - 1}: {elapsed_s:.0f} s, {rate:.1f} runs a second")
    for name, count in sorted(totals.items()):
        print(f"  {name:<30}{count:>10}")
    print(f"{len(failed)} of {len(seeds)} runs broke a rule: {failed}" if failed else "no rule was broken")
    return 1 if failed else 0


def _summarize(
    verdicts: Iterable[Verdict], *, is_verbose: bool, is_keyed: bool
) -> tuple[list[int], dict[str, int]]:
    options = " --keyed" if is_keyed else ""
    failed: list[int] = []
    totals: dict[str, int] = {}
    for verdict in verdicts:
        for name, count in verdict.counts.items():
            totals[name] = totals.get(name, 0) + count
        if is_verbose:
            print(
                f"{verdict.seed}: {verdict.steps} steps, {verdict.span_s:.0f} simulated seconds, "
                f"{verdict.cpu_s:.2f} s of CPU, {verdict.counts.get('commits', 0)} commits"
            )
        if verdict.broken:
            failed.append(verdict.seed)
            print(*verdict.tail, sep="\n")
            print(f"seed {verdict.seed}: {verdict.broken}")
            print(f"again: python -m cynosure.testing.sim --seed {verdict.seed}{options}", flush=True)
    return failed, totals


def _run_one(seed: int, *, is_keyed: bool) -> int:
    logging.disable(logging.CRITICAL)
    weather = (draw_keyed_weather if is_keyed else draw_weather)(seeded(seed, "weather"))
    print(weather)
    run = run_seed(seed, weather=weather)
    print(*run.history.lines(), sep="\n")
    for name, count in sorted(run.history.counts.items()):
        print(f"  {name:<30}{count:>10}")
    print(run.broken or "no rule was broken")
    return 1 if run.broken else 0


if __name__ == "__main__":
    sys.exit(main())
