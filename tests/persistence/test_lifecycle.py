"""Opening and closing a store: in order, whatever fails, however many do it at once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.common.errors import Misconfigured, NewerFormat, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend, MemoryStore
from cynosure.persistence.commit import Committed
from cynosure.persistence.lifecycle import Persistence, open_persistence, open_persistence_on
from cynosure.persistence.objects import seal
from cynosure.persistence.references import (
    DEFAULT_REALM,
    REALM_REFERENCES,
    REALMS,
    catalog_reference,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import SYSTEM_REALM, CatalogId, Reference, Row
from cynosure.persistence.store_info import STORE_INFO, StoreInfo, find_store_info
from cynosure.testing.workload import Items

pytestmark = pytest.mark.anyio

MAIN = catalog_reference(DEFAULT_REALM, CatalogId("c"), "main")


class WatchedBackend(MemoryBackend):
    """Writes down what is asked of it in the end."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__(store)
        self.asked: list[str] = []
        self.swaps = asyncio.Event()
        self.may_swap = asyncio.Event()
        self.may_swap.set()

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        self.swaps.set()
        await self.may_swap.wait()
        self.asked.append("swap reference")
        return await super().swap_ref(expected, updated, rows)

    async def swap(self, row: Row, expected_token: str) -> bool:
        self.asked.append(f"swap {row.key.type}")
        return await super().swap(row, expected_token)

    async def close(self) -> None:
        self.asked.append("close")
        await super().close()


async def test_an_empty_store_is_refused_unless_it_is_to_be_initialised(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"

    with pytest.raises(Misconfigured) as refused:
        async with open_persistence(url):
            pytest.fail("opened")
    async with open_persistence(url, initialise=True) as persistence:
        made = persistence.info
    async with open_persistence(url) as persistence:
        assert persistence.info == made

    assert "store init" in refused.value.fix


async def test_initialising_makes_the_default_realm_and_keeps_what_is_there(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    async with open_persistence(url, initialise=True) as persistence:
        first = persistence.info, await persistence.backend.list_refs()

    async with open_persistence(url, initialise=True) as persistence:
        again = persistence.info, await persistence.backend.list_refs()
        realms = await list_realms(persistence.committer(REALMS))

    assert again == first
    assert realms == [DEFAULT_REALM]
    keys = {ref.key for ref in first[1]}
    assert keys == {REALMS, *(realm_reference(DEFAULT_REALM, name) for name in REALM_REFERENCES)}


async def test_several_that_initialise_at_once_make_one_store(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"

    async def initialise() -> StoreInfo:
        async with open_persistence(url, initialise=True) as persistence:
            assert await list_realms(persistence.committer(REALMS)) == [DEFAULT_REALM]
            return persistence.info

    infos = await asyncio.gather(*(initialise() for _ in range(5)))

    assert len({info.id for info in infos}) == 1
    assert len({info.page_key for info in infos}) == 1


async def test_a_store_in_memory_lives_as_long_as_it_is_open() -> None:
    async with open_persistence("memory:", initialise=True) as persistence:
        await ensure_reference(persistence.backend, MAIN, persistence.clock)
        outcome = await persistence.committer(MAIN).commit(Items(persistence.ids).add("t"))
        assert isinstance(outcome, Committed)

    with pytest.raises(Misconfigured):
        async with open_persistence("memory:"):
            pytest.fail("opened")


async def test_commits_end_before_the_node_id_is_given_back_and_that_before_the_database_closes() -> None:
    """I14, I23."""
    backend = WatchedBackend()
    is_open = asyncio.Event()
    may_close = asyncio.Event()
    opened: list[Persistence] = []

    async def live() -> None:
        async with open_persistence_on(backend, initialise=True) as persistence:
            await ensure_reference(backend, MAIN, persistence.clock)
            opened.append(persistence)
            is_open.set()
            await may_close.wait()

    life = asyncio.create_task(live())
    await is_open.wait()
    backend.asked.clear()
    backend.swaps.clear()
    backend.may_swap.clear()
    persistence = opened[0]
    commit = asyncio.create_task(persistence.committer(MAIN).commit(Items(persistence.ids).add("t")))
    await backend.swaps.wait()
    may_close.set()
    await asyncio.sleep(0.01)
    assert backend.asked == []
    backend.may_swap.set()
    await asyncio.gather(life, commit)

    assert backend.asked == ["swap reference", "swap node-lease", "close"]
    with pytest.raises(Unavailable):
        persistence.ids.next()


async def test_a_node_id_is_free_again_after_a_clean_end() -> None:
    store = MemoryStore()
    for _ in range(3):
        async with open_persistence_on(MemoryBackend(store), initialise=True) as persistence:
            leased = [lease for lease in await persistence.leases.list() if lease.is_leased]
            assert len(leased) == 1


@pytest.mark.parametrize("reason", ["empty", "lifetimes", "newer layout"])
async def test_whatever_keeps_it_from_opening_the_database_is_closed(reason: str) -> None:
    store = MemoryStore()
    settings = PersistenceSettings()
    expected: type[Exception] = Misconfigured
    if reason == "lifetimes":
        settings = PersistenceSettings(commit_deadline=timedelta(hours=2))
    if reason == "newer layout":
        expected = NewerFormat
        await make_newer(store)
    backend = WatchedBackend(store)

    with pytest.raises(expected):
        async with open_persistence_on(backend, settings):
            pytest.fail("opened")

    assert backend.asked == ["close"]


async def make_newer(store: MemoryStore) -> None:
    async with open_persistence_on(MemoryBackend(store), initialise=True) as persistence:
        system = persistence.store(SYSTEM_REALM)
        info = await find_store_info(system)
        assert info is not None
    ((key, row),) = ((key, row) for key, row in store.rows.items() if key.type == STORE_INFO.name)
    newer = StoreInfo(id=info.id, layout=99, created_us=info.created_us, page_key=info.page_key)
    store.rows[key] = row._replace(blob=seal(STORE_INFO, newer))


async def test_a_process_has_one_committer_per_reference() -> None:
    async with open_persistence("memory:", initialise=True) as persistence:
        assert persistence.committer(REALMS) is persistence.committer(REALMS)
        assert persistence.committer(REALMS) is not persistence.committer(MAIN)


async def test_a_missing_reference_of_a_listed_realm_is_mended_at_the_next_start() -> None:
    """I19."""
    store = MemoryStore()
    async with open_persistence_on(MemoryBackend(store), initialise=True):
        pass
    lost = realm_reference(DEFAULT_REALM, "principals")
    del store.refs[lost]

    async with open_persistence_on(MemoryBackend(store), initialise=True) as persistence:
        assert (await persistence.committer(lost).read()).ref.head == 0
