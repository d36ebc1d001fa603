"""Pages of one state, while others write and on whichever server; tokens that are not ours are refused."""

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from random import Random

import pytest

from cynosure.common.errors import BadInput, BadPageToken, Expired
from cynosure.common.paging import PageTokens
from cynosure.persistence.backends.memory import MemoryBackend, MemoryStore
from cynosure.persistence.commit import COMMIT
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.listing import MAX_PAGE, Page, list_page
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference, ensure_reference
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import CatalogId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.workload import Items

pytestmark = pytest.mark.anyio

MAIN = catalog_reference(DEFAULT_REALM, CatalogId("c"), "main")
OTHER = catalog_reference(DEFAULT_REALM, CatalogId("d"), "main")


class Servers:
    """Several servers on one store, with one clock."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.clock = ManualClock()
        self._store = MemoryStore()
        self._stack = stack

    async def start(self) -> Persistence:
        opened = open_persistence_on(
            MemoryBackend(self._store),
            PersistenceSettings(page_token_life=timedelta(hours=1)),
            initialise=True,
            clock=self.clock,
            rng=Random(7),
        )
        server = await self._stack.enter_async_context(opened)
        for key in (MAIN, OTHER):
            await ensure_reference(server.backend, key, self.clock)
        return server


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        yield Servers(stack)


async def fill(server: Persistence, names: list[str], key=MAIN) -> None:
    items = Items(server.ids)
    for name in names:
        await server.committer(key).commit(items.add("ns", name))


async def page(server: Persistence, *, size: int = 3, token: str | None = None, **changed) -> Page:
    wanted = {"key": MAIN, "index": "names", "prefix": encode_key("ns"), **changed}
    committer = server.committer(wanted.pop("key"))
    return await list_page(committer, server.page_tokens, size=size, token=token, **wanted)


def names(listed: Page) -> list[str]:
    return [key.decode()[-2:] for key, _ in listed.entries]


async def test_pages_show_one_state_while_others_write_and_on_any_server(servers: Servers) -> None:
    """I13."""
    first, second = await servers.start(), await servers.start()
    wanted = [f"t{number}" for number in range(10)]
    await fill(first, wanted)

    listed: list[str] = []
    token: str | None = None
    answering = [first, second]
    for number in range(4):
        found = await page(answering[number % 2], token=token)
        listed += names(found)
        token = found.next_token
        # Before, between and after what is still to come; and one that is listed goes away.
        await fill(second, [f"a{number}", f"t{number}x", f"z{number}"])
        await first.committer(MAIN).commit(Items(first.ids).drop("ns", f"t{9 - number}"))

    assert listed == wanted
    assert token is None
    assert len(names(await page(first, size=100))) == 10 + 12 - 4


async def test_the_last_page_has_no_token_even_when_it_is_full(servers: Servers) -> None:
    server = await servers.start()
    await fill(server, ["t1", "t2", "t3"])

    found = await page(server, size=3)

    assert names(found) == ["t1", "t2", "t3"]
    assert found.next_token is None


async def test_an_empty_reference_has_one_empty_page(servers: Servers) -> None:
    found = await page(await servers.start())

    assert (list(found.entries), found.next_token) == ([], None)


@pytest.mark.parametrize("size", [0, -1, MAX_PAGE + 1])
async def test_a_page_size_out_of_range_is_refused(servers: Servers, size: int) -> None:
    with pytest.raises(BadInput) as refused:
        await page(await servers.start(), size=size)

    assert refused.value.field == "pageSize"
    assert str(MAX_PAGE) in refused.value.fix


def flip(token: str) -> str:
    sealed = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    sealed[len(sealed) // 2] ^= 1
    return base64.urlsafe_b64encode(bytes(sealed)).decode().rstrip("=")


@pytest.mark.parametrize(
    "damage",
    [flip, lambda token: token[:-1], lambda token: token + "A", lambda token: "", lambda token: "ü$"],
    ids=["forged", "truncated", "longer", "empty", "not base64"],
)
async def test_a_token_that_was_changed_is_refused(servers: Servers, damage: Callable[[str], str]) -> None:
    """I13."""
    server = await servers.start()
    await fill(server, ["t1", "t2", "t3", "t4"])
    token = (await page(server)).next_token
    assert token is not None

    with pytest.raises(BadPageToken) as refused:
        await page(server, token=damage(token))

    assert refused.value.field == "pageToken"
    assert "list again" in refused.value.fix


@pytest.mark.parametrize(
    "changed",
    [{"key": OTHER}, {"index": "ids"}, {"prefix": b""}, {"prefix": encode_key("other")}],
    ids=["reference", "index", "no prefix", "prefix"],
)
async def test_a_token_of_another_listing_is_refused(servers: Servers, changed: dict[str, object]) -> None:
    """I13."""
    server = await servers.start()
    await fill(server, ["t1", "t2", "t3", "t4"])
    token = (await page(server)).next_token

    with pytest.raises(BadPageToken):
        await page(server, token=token, **changed)


async def test_a_token_of_another_store_is_refused(servers: Servers) -> None:
    """I13."""
    server = await servers.start()
    await fill(server, ["t1", "t2", "t3", "t4"])
    scope = "\x00".join([*MAIN, "names", encode_key("ns").hex()])
    foreign = PageTokens(b"k" * 32, servers.clock, timedelta(hours=1)).seal(scope, b"\x92\x01\xc4\x00")

    with pytest.raises(BadPageToken):
        await page(server, token=foreign)


async def test_a_token_is_refused_when_its_time_is_over(servers: Servers) -> None:
    """I13."""
    server = await servers.start()
    await fill(server, ["t1", "t2", "t3", "t4"])
    token = (await page(server)).next_token
    await servers.clock.advance(3_600)

    with pytest.raises(Expired) as refused:
        await page(server, token=token)

    assert "List again" in refused.value.fix


async def test_a_state_that_is_gone_is_expired_and_not_damage(servers: Servers) -> None:
    server = await servers.start()
    await fill(server, ["t1", "t2", "t3", "t4"])
    found = await page(server)
    fresh = await servers.start()
    await fresh.backend.delete([found.state.store.key(COMMIT, found.state.commit_id)])

    with pytest.raises(Expired) as refused:
        await page(fresh, token=found.next_token)

    assert "List again" in refused.value.fix
