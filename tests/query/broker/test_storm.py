"""Many fragments, attempts and accidents at once: in the end everything was read, and nothing is left."""

import asyncio
import random

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError
from cynosure.query.broker.brokered import BrokeredQuery
from cynosure.query.broker.runtime import Outcome
from cynosure.query.stream.frames import Beat, Hello
from cynosure.query.stream.framing import encode_frame
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import read_fragments
from cynosure.query.worker.stream_client import BrokerPlace, _connect, open_stream
from cynosure.storage.errors import StorageUnavailable
from cynosure.testing.small_broker import SmallBroker, make_order, number_batches, scan_files

pytestmark = pytest.mark.anyio

FRAGMENTS = 12
ATTEMPTS = 6


def fail(task, watch):
    yield next(scan_files(task, watch))
    raise StorageUnavailable("The storage does not answer")


def attempt_at(query: BrokeredQuery, name: str, attempt_id: int, kind: str) -> str:
    """One attempt, as an executor would have it; on a thread."""
    place, worker = f"0/{name}", f"host/{attempt_id % 3}"
    hello = Hello("q", name, query.tokens[name], attempt_id, attempt_id, worker, place=place)
    if kind in ("vanish", "babble"):
        # A process that dies, or is not ours.
        connection = _connect(BrokerPlace(query.address, query.ca_pem), SystemClock())
        connection.sendall(encode_frame(hello))
        connection.sendall(encode_frame(Beat(1, 1, 1)) if kind == "vanish" else b"\xff" * 64)
        connection.close()
        return kind
    if kind == "abandon":
        stream = open_stream(BrokerPlace(query.address, query.ca_pem), hello)
        stream.close()
        return kind
    batches = read_fragments(
        make_order(query, [name]),
        number_batches(1),
        attempt=Attempt(attempt_id, attempt_id, place, worker),
        scan=fail if kind == "fail" else scan_files,
    )
    if kind == "leave":
        next(batches)
        batches.close()
        return kind
    return f"rows {sum(batch.num_rows for batch in batches)}"


@pytest.mark.parametrize("seed", range(3))
async def test_a_storm_leaves_nothing_behind(seed: int) -> None:
    rng = random.Random(seed)
    async with SmallBroker() as small:
        names = [f"f{number}" for number in range(FRAGMENTS)]
        query = small.open("q", names, retries=10 * ATTEMPTS)
        kinds = ["finish", "fail", "leave", "vanish", "babble", "abandon"]
        work = [
            (name, attempt_id, rng.choice(kinds)) for name in names for attempt_id in range(1, ATTEMPTS + 1)
        ]
        rng.shuffle(work)

        results = await asyncio.gather(
            *(asyncio.to_thread(attempt_at, query, *each) for each in work), return_exceptions=True
        )
        # What was given was whole, or was an error of ours.
        assert {each for each in results if isinstance(each, str) and each.startswith("rows")} <= {"rows 3"}
        assert all(isinstance(each, str | CynosureError | OSError) for each in results)
        # And the attempt that Spark would make last succeeds, whatever happened before.
        for name in names:
            assert await asyncio.to_thread(attempt_at, query, name, 100, "finish") == "rows 3"

        await small.wait_for(lambda: not small.broker._connections)
        assert query.live() == []
        assert all(each.active_fragments == 0 for each in small.broker.workers())
        tasks = small.broker.runtime.tasks()
        assert Outcome.RUNNING not in {each.outcome for each in tasks}
        assert sum(each.is_success and each.attempt == 100 for each in small.reports) == FRAGMENTS
