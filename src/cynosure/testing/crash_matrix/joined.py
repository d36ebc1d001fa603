"""Several appends with keys at once, whose server halts: those that wait for a turn share a commit.

    first server              second server
    ------------              -------------
    12 appends ... halts
                              the same 12, same keys, at once: answers A1 to A12
                              and again: the same
    stopped: goes on, and each is told its answer or a 5xx; killed: starts again, and answers the same

Must not break: every file is in the table once, added by the snapshot its writer was told, and nothing that a
snapshot names is missing, whatever the first server did when it went on.
"""

import asyncio
import uuid
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx

from cynosure.testing.appended import data_file, judge_history
from cynosure.testing.crash_matrix.chain import Committed
from cynosure.testing.crash_matrix.halting import How, Order
from cynosure.testing.crash_matrix.pair import Pair
from cynosure.testing.crash_matrix.trial import REPLAYED, Step, Verdict
from cynosure.testing.crash_matrix.world import CATALOG, OURS, World

NAME: Final = "append files together"
STEPS: Final = tuple(
    Step(when, write)
    for write in ("reserve", "commit", "joint", "finalize")
    for when in ("before", "after")
)  # fmt: skip
"""`joint` is the first commit that several of them share; `commit` that of whoever came first."""
_APPENDS: Final = 12
_TRIES: Final = 5
"""Who comes when is up to the machine: appends that come one after the other share nothing."""

Answers = dict[str, httpx.Response | httpx.HTTPError]


class JoinedTrials:
    """Tries appends on a pair of servers."""

    def __init__(self, pair: Pair, world: World) -> None:
        self._pair = pair
        self._world = world

    async def run(self, step: Step, how: How) -> Verdict:
        """Halt the server at a step, repeat all appends elsewhere, and judge."""
        for _ in range(_TRIES):
            verdict = await self._run(step, how)
            if verdict.status:
                break
        return verdict

    async def _run(self, step: Step, how: How) -> Verdict:
        pair = self._pair
        table = await self._world.table()
        location = (await self._world.send("GET", table)).json()["metadata"]["location"]
        appends = {f"f{number:02d}": str(uuid.uuid4()) for number in range(_APPENDS)}
        heads = await pair.chain.heads()

        async def send_all(http: httpx.AsyncClient) -> Answers:
            path = f"{table.replace(CATALOG, OURS)}/append"
            answers = await asyncio.gather(
                *(_send(http, path, data_file(location, name), key) for name, key in appends.items())
            )
            return dict(zip(appends, answers, strict=True))

        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(pair.halting.client(timeout=60))
            # A connection for each, so that they come at once.
            for seen in await asyncio.gather(*(http.get(table) for _ in appends)):
                assert seen.status_code == 200, seen.text
            pair.order(Order(how, step.when, step.write))
            sent = asyncio.create_task(send_all(http))
            try:
                if not await pair.wait_halted(sent):
                    return Verdict(0, False, "", (f"never came to {step}",))
                second = await send_all(pair.to_steady)
                third = await send_all(pair.to_steady)
                if how == "stop":
                    pair.halting.process.sigcont()
                    await asyncio.wait([sent], timeout=30)
            finally:
                if pair.halting.process.is_running:
                    pair.halting.process.sigcont()
                await pair.revive()
            first = await sent
            problems = [*_compare("another try", third, second), *_compare("the first server", first, second)]
            if how == "kill":
                anew = await stack.enter_async_context(pair.halting.client(timeout=60))
                problems += _compare("the restarted server", await send_all(anew), second)
        problems += await self._judge(table, second, await pair.chain.since(heads))
        told = [each for each in first.values() if isinstance(each, httpx.Response)]
        worst = str(max(each.status_code for each in told)) if told else "nothing"
        return Verdict(200, any(map(_is_replayed, second.values())), worst, tuple(problems))

    async def _judge(self, table: str, answers: Answers, committed: Committed) -> list[str]:
        told: dict[str, int] = {}
        for name, answer in answers.items():
            if isinstance(answer, httpx.HTTPError) or answer.status_code != 200:
                return [f"{name}: {answer!r}"]
            told[name] = answer.json()["snapshot-id"]
        problems = judge_history((await self._world.send("GET", table)).json()["metadata"], told)
        counts = (committed.keyed("answer"), committed.keyed("refusal"))
        if counts != (_APPENDS, 0):
            problems.append(f"{counts[0]} answers and {counts[1]} refusals are in the chain")
        return problems


async def _send(
    http: httpx.AsyncClient, path: str, file: dict[str, Any], key: str
) -> httpx.Response | httpx.HTTPError:
    try:
        return await http.post(path, json={"data-files": [file]}, headers={"Idempotency-Key": key})
    except httpx.HTTPError as error:
        return error


def _is_replayed(answer: httpx.Response | httpx.HTTPError) -> bool:
    return isinstance(answer, httpx.Response) and REPLAYED in answer.headers


def _compare(who: str, answers: Answers, wanted: Answers) -> list[str]:
    """The same answers; the first server may also be dead, or say that it does not know."""
    problems = []
    for name, answer in answers.items():
        right = wanted[name]
        if isinstance(answer, httpx.HTTPError) or isinstance(right, httpx.HTTPError):
            if who != "the first server":
                problems.append(f"{who}: {name}: {answer!r}")
        elif who == "the first server" and answer.status_code >= 500:
            continue
        elif (answer.status_code, answer.content) != (right.status_code, right.content):
            problems.append(
                f"{who}: {name}: {answer.status_code} {answer.text[:200]}, "
                f"not {right.status_code} {right.text[:200]}"
            )
    return problems
