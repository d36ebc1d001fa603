"""Stores that earlier versions wrote: this version opens them, lists, compares, restores and goes on."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from cynosure.persistence.backends.sqlite.connection import FORMAT_VERSION
from cynosure.persistence.commit import AlreadyCommitted, Committed
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.history.compare import compare
from cynosure.persistence.history.log import state_at_commit, walk_log
from cynosure.persistence.history.restore import restore
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.listing import list_page
from cynosure.persistence.maintenance import GC
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.references import REALMS
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store_info import LAYOUT
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.storm.writers import MAIN, TYPES, read_counts
from cynosure.testing.workload import Items

from .make_golden import FOREIGN, HERE, NEWEST, SETTINGS

pytestmark = pytest.mark.anyio

STORES = sorted(path.name for path in HERE.glob("layout-*"))


class Golden(NamedTuple):
    """A copy of a golden store and what its writer said is in it."""

    path: Path
    expected: dict[str, Any]

    @asynccontextmanager
    async def open(self, *, later_s: float = 60.0) -> AsyncIterator[Persistence]:
        """Some time after it was written."""
        clock = ManualClock(now_us=self.expected["now_us"] + round(later_s * 1_000_000))
        backend = open_backend(f"sqlite:{self.path}")
        opened = open_persistence_on(
            backend, SETTINGS, initialise=True, types=TYPES, clock=clock, rng=Random(1)
        )
        async with opened as persistence:
            yield persistence


@pytest.fixture(params=STORES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    source = HERE / request.param
    path = tmp_path / "store.db"
    shutil.copyfile(source / "store.db", path)
    return Golden(path, json.loads((source / "expected.json").read_text()))


def test_there_is_a_golden_store_of_the_current_layout() -> None:
    """Made by `python -m tests.upgrade.make_golden` in the change that raises the layout."""
    assert f"layout-{LAYOUT}" in STORES
    assert NEWEST in STORES
    assert FORMAT_VERSION == 1, "A new format of the file needs a golden store as well."


async def test_it_opens_and_everything_in_it_is_whole(golden: Golden) -> None:
    """I20."""
    async with golden.open() as persistence:
        refs = await persistence.backend.list_refs()
        reports = [
            await check_reference(persistence.store(ref.key.realm, ref.key.catalog), ref) for ref in refs
        ]
        realms = await list_realms(persistence.committer(REALMS))
        task = await persistence.tasks.find(GC)
        leases = await persistence.leases.list()

    assert persistence.info.id == golden.expected["store"]
    assert [report.problems for report in reports if report.problems] == []
    assert realms == ["acme", "default"]
    assert task is not None
    assert [run.outcome for run in task.runs] == ["succeeded"]
    assert "catalog-2" in {lease.owner.host for lease in leases}


async def test_its_state_and_history_are_what_was_written(golden: Golden) -> None:
    async with golden.open() as persistence:
        main = persistence.committer(MAIN)
        state = (await main.read()).state
        log = [[entry.id, entry.record.sequence] async for entry in walk_log(main.store, state.commit_id)]
        counts = await read_counts(state)
        early = await state_at_commit(main.store, state.commit_id, ObjId(golden.expected["early"]))
        changed = {entry.key async for entry in compare(early, state) if entry.index == "names"}

    assert log == golden.expected["log"]
    assert counts == golden.expected["counts"]
    assert changed == {encode_key("counter"), encode_key("renamed"), encode_key("ns", "t199")}


async def test_a_listing_begun_by_its_writer_goes_on(golden: Golden) -> None:
    """I13."""
    async with golden.open() as persistence:
        main, prefix = persistence.committer(MAIN), encode_key("ns")
        first = await list_page(main, persistence.page_tokens, index="names", prefix=prefix, size=10)
        await main.commit(Items(persistence.ids).create("ns", "t000b"))
        token = golden.expected["next_token"]
        second = await list_page(
            main, persistence.page_tokens, index="names", prefix=prefix, size=500, token=token
        )

    listed = [key.hex() for key, _ in first.entries]
    assert listed == golden.expected["first_page"]
    assert len(first.entries) + len(second.entries) == 200  # 199 small ones and the large one
    assert encode_key("ns", "t000b") not in {key for key, _ in second.entries}


# Before there was a log of keys, there was no way to send one.
@pytest.mark.parametrize("golden", [name for name in STORES if "key-log" in name], indirect=True)
async def test_its_idempotency_keys_still_count(golden: Golden) -> None:
    """I10."""
    async with golden.open() as persistence:
        items, main = Items(persistence.ids), persistence.committer(MAIN)
        repeated = await main.commit(items.add("counter", amount=4, key_hash="facade"))
        new = await main.commit(items.add("counter", amount=1, key_hash="decade"))

    assert repeated == AlreadyCommitted(ObjId(golden.expected["head"]), "facade")
    assert isinstance(new, Committed)
    assert new.result == 10


async def test_an_earlier_state_can_be_restored_and_writing_goes_on(golden: Golden) -> None:
    """I18."""
    async with golden.open() as persistence:
        main = persistence.committer(MAIN)
        restored = await restore(
            main,
            ObjId(golden.expected["early"]),
            principal="op",
            request_id="",
            clock=persistence.clock,
            retention=SETTINGS.gc.history_retention,
        )
        outcome = await main.commit(Items(persistence.ids).add("ns", "t000"))
        counts = await read_counts((await main.read()).state)

    assert isinstance(restored, Committed)
    assert isinstance(outcome, Committed)
    assert outcome.sequence == golden.expected["log"][0][1] + 2
    assert outcome.result == 6
    assert encode_key("counter").decode() not in counts


async def test_collecting_keeps_what_is_pinned_reachable_or_foreign(golden: Golden) -> None:
    """I16, I17: long after everything that is not pinned has left the retained history."""
    async with golden.open(later_s=400 * 86_400) as persistence:
        main = persistence.committer(MAIN)
        items = Items(persistence.ids)
        for _ in range(SETTINGS.recent_heads + 10):
            await main.commit(items.add("fresh"))
        report = await persistence.collector().run()
        (ref,) = [ref for ref in await persistence.backend.list_refs() if ref.key == MAIN]
        checked = await check_reference(main.store, ref)
        (kept,) = await persistence.backend.fetch([FOREIGN])
    async with golden.open(later_s=400 * 86_400 + 60) as persistence:
        store = persistence.store(MAIN.realm, MAIN.catalog)
        pinned = await state_at_commit(
            store, ObjId(golden.expected["pinned"]), ObjId(golden.expected["pinned"])
        )
        counts = await read_counts(pinned)

    assert report.deleted > 0
    assert checked.problems == ()
    assert kept is not None
    assert counts[encode_key("counter").decode()] == 5
    assert encode_key("ns", "large").decode() in counts
