"""One request, one step, one fault: what is answered, and what is wrong with what came of it.

    first server        second server
    ------------        -------------
    request ... halts
                        the same request, same key: answers A
                        and again: answers A
    stopped: goes on, and answers A or a 5xx; killed: starts again, is asked again, and answers A

Must not break: everything that is promised is looked at after everything that could still change it.
"""

import asyncio
import uuid
from collections import Counter
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

import httpx

from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.crash_matrix.chain import Committed, Heads
from cynosure.testing.crash_matrix.halting import How, Order, When, Write
from cynosure.testing.crash_matrix.pair import Pair
from cynosure.testing.crash_matrix.world import Call, Prepare, World

REPLAYED: Final = "idempotency-replayed"


class Step(NamedTuple):
    """Where a request is halted."""

    when: When
    write: Write

    def __str__(self) -> str:
        return f"{self.when} {self.write}"


class Normal(NamedTuple):
    """What happens when nothing goes wrong."""

    writes: tuple[Write, ...]
    changes: "Counter[str]"
    """Of all commits on the way."""

    def steps(self) -> list[Step]:
        """Every place to halt at."""
        return [Step(when, write) for write in self.writes for when in ("before", "after")]


class Verdict(NamedTuple):
    """What came of a trial."""

    status: int
    """What the second server answered."""
    is_replayed: bool
    """As the answer of an attempt before it: the first one had got that far."""
    first: str
    """What the first server answered in the end."""
    problems: tuple[str, ...]


class Trials:
    """Tries requests on a pair of servers."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.world = World(pair.to_steady, pair.files)

    async def watch(self, prepare: Prepare) -> Normal:
        """Have a request answered without any fault, and see what it writes."""
        pair = self.pair
        call = await prepare(self.world)
        heads = await pair.chain.heads()
        pair.order(Order("watch"))
        async with AsyncExitStack() as stack:
            http = await self._client(stack, pair.halting, call)
            answer = await send(http, call, _new_key())
            await self._until_noted(call)
        writes = tuple(dict.fromkeys(pair.orders.seen()))
        pair.orders.take_back()
        assert answer.status_code == call.status, f"{answer.status_code} {answer.text}"
        wrong = await call.probe(pair.to_steady, answer)
        assert not wrong, wrong
        return Normal(writes, (await pair.chain.since(heads)).changes())

    async def run(self, prepare: Prepare, normal: Normal, step: Step, how: How) -> Verdict:
        """Halt a request at a step, repeat it elsewhere, and judge."""
        pair = self.pair
        call = await prepare(self.world)
        heads, key = await pair.chain.heads(), _new_key()
        problems: list[str] = []
        async with AsyncExitStack() as stack:
            to_halting = await self._client(stack, pair.halting, call)
            to_steady = await self._client(stack, pair.steady, call)
            pair.order(Order(how, step.when, step.write))
            sent = asyncio.create_task(send(to_halting, call, key))
            try:
                if not await pair.wait_halted(sent):
                    if call.is_uneven and step.write.startswith("part"):
                        return Verdict(call.status, False, "went past it", ())
                    return Verdict(0, False, "", (f"never came to {step}: {_told(sent)}",))
                second = await send(to_steady, call, key)
                third = await send(to_steady, call, key)
                committed = await pair.chain.since(heads)
                reached = await pair.chain.heads()
                if how == "stop":
                    pair.halting.process.sigcont()
                await asyncio.wait([sent])
            finally:
                await self._recover(sent)
            first = _told(sent)
            if how == "kill":
                # Anew: the connections of the old one lead to a process that is dead.
                anew = await self._client(stack, pair.halting, call)
                _compare(problems, "the restarted server", await send(anew, call, key), second)
        _compare(problems, "another try", third, second)
        if second.status_code != call.status:
            problems.append(f"answered {second.status_code}, not {call.status}: {second.text[:200]}")
        if not _is_fair(sent, second):
            problems.append(f"the first server answered {first}")
        await self._settled(problems, reached)
        problems += _count(call, normal, committed)
        if wrong := await call.probe(pair.to_steady, second):
            problems.append(wrong)
        return Verdict(second.status_code, REPLAYED in second.headers, first, tuple(problems))

    async def _settled(self, problems: list[str], reached: Heads) -> None:
        later = await self.pair.chain.since(reached)
        if later.requests:
            told = [(each.operation, [change.kind for change in each.changes]) for each in later.requests]
            problems.append(f"the first server changed something afterwards: {told}")

    async def _recover(self, sent: "asyncio.Task[httpx.Response]") -> None:
        process = self.pair.halting.process
        if process.is_running:
            process.sigcont()
        await self.pair.revive()
        await asyncio.wait([sent], timeout=30)
        if not sent.done():
            sent.cancel()
            await asyncio.wait([sent])

    async def _client(self, stack: AsyncExitStack, server: CatalogServer, call: Call) -> httpx.AsyncClient:
        login = None if call.credential is None else server.login_as(call.credential)
        http = await stack.enter_async_context(server.client(login, timeout=60))
        # A token first, and the newest state: afterwards only one request is of interest, with one commit.
        asked = await http.get("/api/management/v1/cynosure/realm")
        assert asked.status_code == 200, asked.text
        if call.credential is None:
            for name in ("lake", "ext"):
                await http.get(f"/api/catalog/v1/{name}/namespaces")
        return http

    async def _until_noted(self, call: Call) -> None:
        """The record of what is in the chain is finalized after the answer."""
        async with asyncio.timeout(30):
            while "finalize" not in self.pair.orders.seen():  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.01)


async def send(http: httpx.AsyncClient, call: Call, key: str) -> httpx.Response:
    """Send a request with a key."""
    return await http.request(call.method, call.path, json=call.body, headers={"Idempotency-Key": key})


def _new_key() -> str:
    return str(uuid.uuid4())


def _told(sent: "asyncio.Task[httpx.Response]") -> str:
    if not sent.done() or sent.cancelled():
        return "nothing"
    if (error := sent.exception()) is not None:
        return "nothing" if isinstance(error, httpx.TransportError) else repr(error)
    return str(sent.result().status_code)


def _is_fair(sent: "asyncio.Task[httpx.Response]", second: httpx.Response) -> bool:
    """The same answer, an honest error of the server, or none because it is dead."""
    if sent.cancelled():
        return False
    if (error := sent.exception()) is not None:
        return isinstance(error, httpx.TransportError)
    first = sent.result()
    return first.status_code >= 500 or (first.status_code, first.content) == (
        second.status_code,
        second.content,
    )


def _compare(problems: list[str], who: str, answer: httpx.Response, wanted: httpx.Response) -> None:
    if (answer.status_code, answer.content) != (wanted.status_code, wanted.content):
        problems.append(
            f"{who} answered {answer.status_code} {answer.text[:200]}, "
            f"not {wanted.status_code} {wanted.text[:200]}"
        )
    elif REPLAYED not in answer.headers:
        problems.append(f"{who} does not say that its answer is a replay")


def _count(call: Call, normal: Normal, committed: Committed) -> list[str]:
    """Compare what was committed with what is committed when nothing goes wrong."""
    problems = []
    # A refusal may follow a commit that lost its race.
    wanted = 1 if "commit" in normal.writes and call.status < 400 else 0
    found = committed.keyed("answer")
    if found != wanted and not (call.may_commit and found == 1):
        problems.append(f"committed {found} times")
    if committed.keyed("refusal") and call.status < 400:
        problems.append("a refusal is in the chain")
    if (changes := committed.changes()) != normal.changes:
        problems.append(f"changes {dict(changes)}, not {dict(normal.changes)}")
    return problems
