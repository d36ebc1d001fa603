"""Servers that are killed or stopped in the middle of a request with a key, which then goes to another one.

A sample of what `./dev soak crashes` does for every kind of request at each step of it.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx
import pytest

from cynosure.testing.crash_matrix.halting import How, When
from cynosure.testing.crash_matrix.joined import JoinedTrials
from cynosure.testing.crash_matrix.mutations import MUTATIONS
from cynosure.testing.crash_matrix.pair import Pair, open_pair
from cynosure.testing.crash_matrix.trial import REPLAYED, Normal, Step, Trials
from cynosure.testing.crash_matrix.world import CATALOG
from cynosure.testing.harness.processes import Processes

from .conftest import STORES

pytestmark = pytest.mark.anyio

ROUNDS, AT_ONCE = 100, 10


class Scene(NamedTuple):
    pair: Pair
    trials: Trials
    normal: dict[str, Normal]
    """What requests write that nothing happens to, by their names."""


@pytest.fixture(scope="module", params=STORES)
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path_factory.mktemp('store')}/store.db"
    found: str = request.getfixturevalue("shared_schema_url")
    return found


@pytest.fixture(scope="module")
async def scene(url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    directory = tmp_path_factory.mktemp("pair")
    with Processes(directory) as processes:
        async with open_pair(processes, directory, url) as pair:
            trials = Trials(pair)
            await trials.world.furnish()
            yield Scene(pair, trials, {})


@pytest.mark.parametrize(
    ("mutation", "how", "when", "write"),
    [
        ("commit table", "stop", "before", "reserve"),
        ("commit table", "kill", "after", "reserve"),
        ("commit table", "stop", "before", "commit"),
        ("commit table", "kill", "after", "commit"),
        ("commit table", "stop", "before", "finalize"),
        ("commit table", "stop", "after", "finalize"),
        ("create principal", "kill", "after", "commit"),
        ("rotate credentials", "stop", "before", "commit"),
        ("create catalog", "stop", "before", "part 4"),
        ("drop catalog", "kill", "after", "part 1"),
        ("purge table", "kill", "after", "commit"),
        ("purge table", "kill", "after", "part 5"),
        ("purge table", "stop", "before", "part 4"),
        ("drop namespace cascade", "kill", "after", "part 1"),
        ("drop namespace cascade", "stop", "before", "commit"),
        ("stage table", "stop", "before", "finalize"),
        ("order maintenance", "kill", "before", "commit"),
        ("refused as taken", "stop", "before", "finalize"),
        ("refused as missing", "kill", "after", "finalize"),
    ],
)
async def test_whatever_happens_to_its_server_a_request_has_one_effect_and_one_answer(
    scene: Scene, mutation: str, how: How, when: When, write: str
) -> None:
    """I73, I74."""
    prepare = MUTATIONS[mutation]
    if mutation not in scene.normal:
        scene.normal[mutation] = await scene.trials.watch(prepare)

    verdict = await scene.trials.run(prepare, scene.normal[mutation], Step(when, write), how)

    assert verdict.problems == ()


@pytest.mark.parametrize(("how", "when"), [("kill", "after"), ("stop", "before")])
async def test_whatever_happens_to_the_server_of_appends_that_share_a_commit_each_has_one_effect(
    scene: Scene, how: How, when: When
) -> None:
    """I73, I74, I81."""
    verdict = await JoinedTrials(scene.pair, scene.trials.world).run(Step(when, "joint"), how)

    assert verdict.problems == ()


async def test_of_two_servers_asked_at_once_with_one_key_one_does_it_and_both_say_the_same(
    scene: Scene,
) -> None:
    """I73, I74."""
    pair = scene.pair
    heads = await pair.chain.heads()
    run = uuid.uuid4().hex[:8]

    async def ask_both(number: int) -> list[httpx.Response]:
        key = {"Idempotency-Key": f"{run}-{number}"}
        body = {"namespace": [f"{run}-{number}"], "properties": {"k": "v"}}
        clients = [pair.to_halting, pair.to_steady]
        asked = [http.post(f"{CATALOG}/lake/namespaces", json=body, headers=key) for http in clients]
        return await asyncio.gather(*asked)

    for first in range(0, ROUNDS, AT_ONCE):
        for answers in await asyncio.gather(*map(ask_both, range(first, first + AT_ONCE))):
            assert [answer.status_code for answer in answers] == [200, 200]
            assert answers[0].content == answers[1].content
            assert sum(REPLAYED in answer.headers for answer in answers) == 1
    committed = await pair.chain.since(heads)
    assert committed.keyed("answer") == ROUNDS
    assert committed.changes() == {"namespace-created": ROUNDS}
