from collections.abc import AsyncIterator

import pytest

from cynosure.common.errors import Conflict, OutcomeUnknown
from cynosure.persistence.bulk import BulkCommit, begin_bulk
from cynosure.persistence.commit import Change
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.objects import ObjRef, TypeRegistry
from cynosure.persistence.references import ensure_reference
from cynosure.persistence.spi import Reference
from cynosure.persistence.store import NewObject
from cynosure.testing import workload
from cynosure.testing.small_store import MAIN, RuledBackend
from cynosure.testing.workload import ITEM, Item, Items

pytestmark = pytest.mark.anyio

TYPES = TypeRegistry([*OBJECT_TYPES, *workload.OBJECT_TYPES])
TOLD = Change(kind="loaded", index="names", key=b"")


@pytest.fixture
async def persistence() -> AsyncIterator[Persistence]:
    async with open_persistence_on(RuledBackend(), initialise=True, types=TYPES) as opened:
        await ensure_reference(opened.backend, MAIN, opened.clock)
        yield opened


async def fill(persistence: Persistence, bulk: BulkCommit, count: int) -> None:
    for number in range(count):
        item = Item(stable_id=persistence.ids.next(), location=f"s3://b/{number}", payload=b"x")
        new = NewObject(ITEM, persistence.ids.next(), item)
        await bulk.write([new])
        await bulk.feed("names", [(encode_key(f"{number:06d}"), ObjRef(new.id, ITEM.name).pack())])


async def names(persistence: Persistence) -> list[bytes]:
    state = (await persistence.committer(MAIN).read()).state
    return [key for key, _ in await state.scan("names", limit=10_000)]


async def test_everything_is_visible_at_once_and_sound(persistence: Persistence) -> None:
    bulk = await begin_bulk(persistence, MAIN)
    await fill(persistence, bulk, 3_000)
    assert await names(persistence) == []

    await bulk.commit("root", "load", [TOLD])

    assert await names(persistence) == [encode_key(f"{number:06d}") for number in range(3_000)]
    base = await persistence.committer(MAIN).read()
    assert [each.operation for each in base.state.commit.record.requests] == ["load"]
    report = await check_reference(base.state.store, base.ref)
    assert not report.problems


async def test_a_used_reference_goes_on_after_a_load(persistence: Persistence) -> None:
    items = Items(persistence.ids)
    committer = persistence.committer(MAIN)
    await committer.commit(items.create("first"))
    await committer.commit(items.drop("first"))

    bulk = await begin_bulk(persistence, MAIN)
    await fill(persistence, bulk, 10)
    loaded = await bulk.commit("root", "load", [TOLD])
    await committer.commit(items.create("next", location="s3://b/next"))

    record = (await committer.read()).state.commit.record
    assert record.sequence == 4
    assert record.parents[0] == loaded
    assert len(await names(persistence)) == 11


async def test_a_reference_that_holds_something_is_refused(persistence: Persistence) -> None:
    await persistence.committer(MAIN).commit(Items(persistence.ids).create("taken"))

    with pytest.raises(Conflict, match="empty"):
        await begin_bulk(persistence, MAIN)


async def test_whoever_commits_meanwhile_wins(persistence: Persistence) -> None:
    bulk = await begin_bulk(persistence, MAIN)
    await fill(persistence, bulk, 10)
    await persistence.committer(MAIN).commit(Items(persistence.ids).create("first"))

    with pytest.raises(Conflict, match="nothing was loaded"):
        await bulk.commit("root", "load", [TOLD])

    assert await names(persistence) == [encode_key("first")]


async def test_a_collection_that_began_meanwhile_makes_the_load_fail(persistence: Persistence) -> None:
    bulk = await begin_bulk(persistence, MAIN)
    await fill(persistence, bulk, 10)
    await persistence.collector().run()

    with pytest.raises(Conflict, match="nothing was loaded"):
        await bulk.commit("root", "load", [TOLD])


async def test_a_lost_answer_to_the_swap_is_found_out(persistence: Persistence) -> None:
    backend = persistence.backend
    assert isinstance(backend, RuledBackend)
    asked = 0

    async def apply_then_fail(expected: Reference, updated: Reference, apply) -> bool:
        nonlocal asked
        asked += 1
        won = await apply()
        if asked == 1:
            raise OutcomeUnknown("The answer was lost")
        return won

    bulk = await begin_bulk(persistence, MAIN)
    await fill(persistence, bulk, 10)
    backend.rule = apply_then_fail

    await bulk.commit("root", "load", [TOLD])

    assert asked == 2
    assert len(await names(persistence)) == 10
