"""A remote that does not answer, and many who ask: nobody else waits for it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pytest

from cynosure.catalog.names import Identifier
from cynosure.federation.settings import FederationSettings
from cynosure.iceberg.metadata import parse_metadata
from cynosure.testing.memory_remote import MemoryRemote
from tests.api.world import World, open_world
from tests.catalog.external import table_metadata
from tests.federation.seen_world import FIRST_LOOK, count_who_comes

pytestmark = pytest.mark.anyio

LIMITS = FederationSettings()
CALLERS = LIMITS.concurrent_each + LIMITS.waiting + 20  # all of one principal
T = Identifier(("ns",), "orders")


class Two(NamedTuple):
    """Two federated catalogs, `slow` and `quick`, and one of our own, `lake`."""

    world: World
    root: httpx.AsyncClient
    remotes: dict[str, MemoryRemote]

    def load(self, catalog: str, table: str = T.name) -> asyncio.Task[httpx.Response]:
        path = f"http://test/api/catalog/v1/{catalog}/namespaces/ns/tables/{table}"
        return asyncio.ensure_future(self.root.get(path))


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    remotes = {"slow": MemoryRemote(), "quick": MemoryRemote()}
    async with (
        open_world(tmp_path, remotes=lambda catalog: remotes[catalog.entity.name]) as world,
        await world.login(world.root) as root,
    ):
        connection = {
            "connectionType": "ICEBERG_REST",
            "uri": "http://127.0.0.1:1/",
            "authenticationParameters": {"authenticationType": "BEARER", "bearerToken": "a-token-of-a-test"},
        }
        for name, remote in remotes.items():
            wanted = world.catalog(name, type="EXTERNAL", connectionConfigInfo=connection)
            assert (await root.post("/catalogs", json=wanted)).status_code == 201
            location = f"file://{tmp_path}/{name}/orders"
            remote.put(T, parse_metadata(msgspec.json.encode(table_metadata(location))))
        assert (await root.post("/catalogs", json=world.catalog("lake"))).status_code == 201
        made = await root.post("http://test/api/catalog/v1/lake/namespaces", json={"namespace": ["ns"]})
        assert made.status_code == 200, made.text
        yield Two(world, root, remotes)


async def wait_until_asked(remote: MemoryRemote, count: int) -> None:
    while len(remote.asked) < count:  # noqa: ASYNC110 - the remote says it to nobody
        await asyncio.sleep(0.001)


async def test_a_remote_that_does_not_answer_holds_up_nobody_else(two: Two) -> None:
    slow = two.remotes["slow"]
    slow.gate = asyncio.Event()
    waiting = [two.load("slow", f"t{number}") for number in range(CALLERS)]
    await wait_until_asked(slow, LIMITS.concurrent_each)
    # Everybody has come when the last ones are refused.
    refused = CALLERS - LIMITS.concurrent_each - LIMITS.waiting
    while sum(each.done() for each in waiting) < refused:  # noqa: ASYNC110 - any of them
        await asyncio.sleep(0.001)

    # All others are served meanwhile.
    quick, own = await two.load("quick"), await two.load("lake")
    done, open_ = await asyncio.wait(waiting, timeout=0)
    asked = len(slow.asked)
    slow.gate.set()
    answers = await asyncio.gather(*waiting)

    assert (quick.status_code, own.status_code) == (200, 404)
    assert {each.result().status_code for each in done} <= {503}
    assert len(open_) >= LIMITS.concurrent_each
    assert asked == LIMITS.concurrent_each
    statuses = [each.status_code for each in answers]
    assert statuses.count(503) == refused
    assert statuses.count(404) == LIMITS.concurrent_each + LIMITS.waiting


async def test_who_asks_for_everything_holds_up_nobody_at_the_same_remote(two: Two) -> None:
    admin = two.world.admin(two.root)
    credential = await admin.create_principal("ann")
    await admin.assign_role("ann", "service_admin")
    path = f"http://test/api/catalog/v1/slow/namespaces/ns/tables/{T.name}"
    slow = two.remotes["slow"]
    slow.gate = asyncio.Event()
    flood = [two.load("slow", f"t{number}") for number in range(CALLERS)]
    refused = CALLERS - LIMITS.concurrent_each - LIMITS.waiting
    while sum(each.done() for each in flood) < refused:  # noqa: ASYNC110 - any of them
        await asyncio.sleep(0.001)
    async with await two.world.login(credential) as ann:
        asking = asyncio.ensure_future(ann.get(path))
        # A turn is left for her, though hundreds of another's requests wait.
        await wait_until_asked(slow, LIMITS.concurrent_each + 1)
        slow.gate.set()
        answer = await asking
    others = await asyncio.gather(*flood)

    assert answer.status_code == 200, answer.text
    busy = [each for each in others if each.status_code == 503]
    assert len(busy) == refused
    assert {each.headers["retry-after"] for each in busy} == {"2"}


async def test_many_who_want_the_same_ask_together(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    come = count_who_comes(monkeypatch)
    slow = two.remotes["slow"]
    slow.gate = asyncio.Event()
    first = two.load("slow")
    await wait_until_asked(slow, 1)
    others = [two.load("slow") for _ in range(300)]
    quick = await two.load("quick")
    while len(come) < 302:  # noqa: ASYNC110 - nobody says that it waits
        await asyncio.sleep(0.001)
    slow.gate.set()
    answers = await asyncio.gather(first, *others)

    assert quick.status_code == 200
    assert {each.status_code for each in answers} == {200}
    # One before them, and one for all of them.
    assert slow.asked == [*FIRST_LOOK, "load-table"]
