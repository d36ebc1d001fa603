"""The whole matrix: `python -m cynosure.testing.crash_matrix [--page FILE] [--only WORDS]`.

Runs on SQLite, and on the PostgreSQL that `CYNOSURE_TEST_POSTGRES` names. Ends with an error when something
is wrong.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncpg
import httpx

from cynosure.testing.crash_matrix import joined
from cynosure.testing.crash_matrix.halting import How
from cynosure.testing.crash_matrix.mutations import MUTATIONS
from cynosure.testing.crash_matrix.pair import open_pair
from cynosure.testing.crash_matrix.table import Result, render
from cynosure.testing.crash_matrix.trial import Step, Trials, Verdict
from cynosure.testing.harness.processes import Processes


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(prog="crash_matrix", description=__doc__)
    parser.add_argument("--page", type=Path, help="write the results there, as a page of the documentation")
    parser.add_argument("--only", default="", help="only requests whose name contains these words")
    parser.add_argument("--store", choices=["SQLite", "PostgreSQL"], action="append")
    parser.add_argument(
        "--pairs", type=int, default=2, help="of servers that are tried at once on each store"
    )
    options = parser.parse_args()
    names = [name for name in (*MUTATIONS, joined.NAME) if options.only in name]
    results = asyncio.run(_run(options.store or ["SQLite", "PostgreSQL"], names, options.pairs))
    if options.page is not None:
        options.page.write_text(render(results))
    wrong = [each for each in results if each.verdict.problems]
    print(f"{len(results)} trials, {len(wrong)} of them with something wrong", flush=True)
    sys.exit(bool(wrong))


async def _run(stores: list[str], names: list[str], pairs: int) -> list[Result]:
    results: list[Result] = []
    for done in await asyncio.gather(
        *(_run_on(store, names[at::pairs]) for store in stores for at in range(pairs))
    ):
        results += done
    return sorted(results, key=lambda each: (stores.index(each.store), names.index(each.mutation)))


async def _run_on(store: str, names: list[str]) -> list[Result]:
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="cynosure-crashes-") as name, Processes(Path(name)) as processes:
        folder = Path(name)
        async with _url(store, folder) as url, open_pair(processes, folder, url) as pair:
            trials = Trials(pair)
            await trials.world.furnish()
            for mutation in names:
                results += await _try(trials, store, mutation)
    return results


async def _try(trials: Trials, store: str, mutation: str) -> list[Result]:
    results = []
    run, steps = await _choose(trials, mutation)
    hows: tuple[How, ...] = ("kill", "stop")
    for how in hows:
        for step in steps:
            try:
                verdict = await run(step, how)
            except (AssertionError, httpx.HTTPError) as error:
                verdict = Verdict(0, False, "", (repr(error),))
            results.append(Result(store, mutation, how, step, verdict))
            said = "; ".join(verdict.problems) or f"{verdict.status}, {verdict.first}"
            print(f"{store}: {mutation}: {how} {step}: {said}", flush=True)
    return results


async def _choose(
    trials: Trials, mutation: str
) -> tuple[Callable[[Step, How], Awaitable[Verdict]], Sequence[Step]]:
    if mutation == joined.NAME:
        return joined.JoinedTrials(trials.pair, trials.world).run, joined.STEPS
    prepare = MUTATIONS[mutation]
    normal = await trials.watch(prepare)
    return partial(trials.run, prepare, normal), normal.steps()


@asynccontextmanager
async def _url(store: str, folder: Path) -> AsyncIterator[str]:
    if store == "SQLite":
        yield f"sqlite:{folder}/store.db"
        return
    server = os.environ["CYNOSURE_TEST_POSTGRES"]
    schema = f"crashes_{uuid.uuid4().hex[:16]}"
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"CREATE SCHEMA {schema}")
        yield f"{server}?schema={schema}"
        await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    finally:
        await connection.close()


if __name__ == "__main__":
    main()
