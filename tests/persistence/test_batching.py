import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from cynosure.common.errors import BadInput, OutcomeUnknown, TooLarge, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.batching import MOST_WRITES, Batcher
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import CatalogId, ConditionalWrite, ObjId, RealmId, Row
from cynosure.persistence.store import Store
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


class Note(Stored, frozen=True, kw_only=True):
    text: str


NOTE = struct_type("note", Note, is_mutable=True)
CACHED = struct_type("cached", Note, is_mutable=True, cache_s=10)


class GatedBackend(MemoryBackend):
    """Conditional writes wait for the test's word, and every call is written down."""

    def __init__(self) -> None:
        super().__init__(row_bytes=1000)
        self.calls: list[tuple[list[int], bool]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        await self._pass([write.key.id for write in writes], is_relaxed)
        return await super().write_each(writes, is_relaxed=is_relaxed)

    async def insert(self, row: Row) -> bool:
        await self._pass([row.key.id], False)
        return await super().insert(row)

    async def swap(self, row: Row, expected_token: str) -> bool:
        await self._pass([row.key.id], False)
        return await super().swap(row, expected_token)

    async def _pass(self, ids: list[int], is_relaxed: bool) -> None:
        self.calls.append((ids, is_relaxed))
        await self.gate.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error


@pytest.fixture
async def backend() -> GatedBackend:
    backend = GatedBackend()
    await backend.setup()
    return backend


@pytest.fixture
def make_store(backend: GatedBackend) -> Callable[[str], Store]:
    clock = ManualClock()
    cache = ObjectCache(1 << 20, clock)
    return lambda realm: Store(
        backend, cache, clock, Random(1), realm=RealmId(realm), catalog=CatalogId("_realm")
    )


@pytest.fixture
def store(make_store: Callable[[str], Store]) -> Store:
    return make_store("r")


@pytest.fixture
def batcher(backend: GatedBackend) -> Batcher:
    return Batcher(backend, ManualClock(), Random(2))


def note(number: int) -> Note:
    return Note(text=str(number))


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_callers_that_arrive_together_share_one_call(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    made = await asyncio.gather(*(batcher.insert(store, NOTE, ObjId(i), note(i)) for i in range(1, 17)))

    assert backend.calls == [(list(range(1, 17)), False)]
    assert [await store.fetch(NOTE, ObjId(i)) for i in range(1, 17)] == made


async def test_who_arrives_while_a_call_is_under_way_goes_with_the_next(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    backend.gate.clear()
    first = asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(1), note(1)))
    await turn()
    others = [asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(i), note(i))) for i in range(2, 9)]
    await turn()
    assert [ids for ids, _ in backend.calls] == [[1]]

    backend.gate.set()
    assert None not in await asyncio.gather(first, *others)

    assert [ids for ids, _ in backend.calls] == [[1], list(range(2, 9))]


async def test_scopes_share_calls_and_each_caller_has_its_own_outcome(
    batcher: Batcher, make_store: Callable[[str], Store], backend: GatedBackend
) -> None:
    one, two = make_store("one"), make_store("two")
    old = await one.insert(NOTE, ObjId(1), note(1))
    gone = await one.insert(NOTE, ObjId(2), note(2))
    stale = await one.insert(NOTE, ObjId(3), note(3))
    assert old
    assert gone
    assert stale
    assert await one.swap(NOTE, stale, note(4))
    backend.calls.clear()

    outcomes: Any = await asyncio.gather(
        batcher.swap(one, NOTE, old, note(10)),
        batcher.delete_if(one, NOTE, gone),
        batcher.swap(one, NOTE, stale, note(30)),
        batcher.insert(two, NOTE, ObjId(1), note(40)),
        batcher.insert(one, NOTE, ObjId(4), note(50)),
    )

    assert len(backend.calls) == 1
    assert outcomes[0] == await one.fetch(NOTE, ObjId(1))
    assert outcomes[0].value == note(10)
    assert outcomes[1] is True
    assert await one.fetch(NOTE, ObjId(2)) is None
    assert outcomes[2] is None
    assert outcomes[3] == await two.fetch(NOTE, ObjId(1))
    assert outcomes[4] == await one.fetch(NOTE, ObjId(4))


async def test_two_writes_of_one_row_go_in_two_calls_in_the_order_of_their_arrival(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    first, second, other = await asyncio.gather(
        batcher.insert(store, NOTE, ObjId(1), note(1)),
        batcher.insert(store, NOTE, ObjId(1), note(2)),
        batcher.insert(store, NOTE, ObjId(2), note(3)),
    )

    assert first
    assert first.value == note(1)
    assert second is None
    assert other
    assert [ids for ids, _ in backend.calls] == [[1, 2], [1]]


async def test_a_call_is_relaxed_only_when_all_of_it_may_be(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    await batcher.insert(store, NOTE, ObjId(1), note(1), is_relaxed=True)
    await batcher.insert(store, NOTE, ObjId(2), note(2))
    await asyncio.gather(
        batcher.insert(store, NOTE, ObjId(3), note(3), is_relaxed=True),
        batcher.insert(store, NOTE, ObjId(4), note(4)),
    )

    assert backend.calls == [([1], True), ([2], False), ([3, 4], False)]


async def test_a_crowd_is_cut_into_calls_of_bounded_size(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    count = 2 * MOST_WRITES + 5

    await asyncio.gather(*(batcher.insert(store, NOTE, ObjId(i), note(i)) for i in range(count)))

    assert [len(ids) for ids, _ in backend.calls] == [MOST_WRITES, MOST_WRITES, 5]


async def test_a_caller_cancelled_before_its_write_is_sent_writes_nothing(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    backend.gate.clear()
    first = asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(1), note(1)))
    await turn()
    second = asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(2), note(2)))
    third = asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(3), note(3)))
    await turn()
    second.cancel()
    await turn()
    backend.gate.set()

    assert await first
    assert await third
    assert second.cancelled()
    assert [ids for ids, _ in backend.calls] == [[1], [3]]


async def test_a_caller_cancelled_later_takes_nobody_with_it(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    backend.gate.clear()
    first, second = (asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(i), note(i))) for i in (1, 2))
    await turn()
    first.cancel()
    await turn()
    backend.gate.set()

    assert await second
    assert first.cancelled()
    assert await store.fetch(NOTE, ObjId(1)) is not None


async def test_a_write_that_breaks_the_rules_is_refused_alone(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    good, large, impossible, another = await asyncio.gather(
        batcher.insert(store, NOTE, ObjId(1), note(1)),
        batcher.insert(store, NOTE, ObjId(2), Note(text="".join(map(chr, range(0x100, 0x700))))),
        batcher.insert(store, NOTE, ObjId(-1), note(3)),
        batcher.insert(store, NOTE, ObjId(4), note(4)),
        return_exceptions=True,
    )

    assert await store.fetch(NOTE, ObjId(1)) == good
    assert isinstance(large, TooLarge)
    assert isinstance(impossible, BadInput)
    assert await store.fetch(NOTE, ObjId(4)) == another


async def test_a_refusal_reaches_all_who_were_in_the_call_and_the_next_call_goes_on(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    backend.error = Unavailable("The database does not answer")

    refused = await asyncio.gather(
        *(batcher.insert(store, NOTE, ObjId(i), note(i)) for i in (1, 2)), return_exceptions=True
    )

    assert [type(error) for error in refused] == [Unavailable, Unavailable]
    assert await batcher.insert(store, NOTE, ObjId(1), note(1))


async def test_what_this_process_writes_in_a_batch_is_not_hidden_by_its_cache(
    batcher: Batcher, store: Store
) -> None:
    old = await batcher.insert(store, CACHED, ObjId(1), note(1))
    assert old
    assert await store.find(CACHED, ObjId(1)) == note(1)

    await batcher.swap(store, CACHED, old, note(2))

    assert await store.find(CACHED, ObjId(1)) == note(2)


async def test_closing_sends_what_waits_and_refuses_what_comes(
    batcher: Batcher, store: Store, backend: GatedBackend
) -> None:
    backend.gate.clear()
    first = asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(1), note(1)))
    await turn()
    second = asyncio.ensure_future(batcher.insert(store, NOTE, ObjId(2), note(2)))
    await turn()
    closing = asyncio.ensure_future(batcher.close())
    await turn()
    backend.gate.set()

    await closing

    assert await first
    assert await second
    with pytest.raises(Unavailable):
        await batcher.insert(store, NOTE, ObjId(3), note(3))


# --- unknown outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults", [["before"], ["after"], ["before", "after"], ["after", "down", "before"], ["before", "down"]]
)
async def test_an_unknown_outcome_of_a_call_is_settled_for_each_of_its_writes(
    make_world: Any, settle: Any, faults: list[str]
) -> None:
    world = await make_world()
    process, other = world.process(), world.process("other")
    batcher = Batcher(process.backend, process.clock, process.rng)
    process.backend.faults = list(faults)

    async def insert_all() -> list[Any]:
        return await asyncio.gather(
            *(batcher.insert(process.store, NOTE, ObjId(i), note(i)) for i in range(1, 6))
        )

    made = await settle(world, insert_all())

    assert [await other.store.fetch(NOTE, ObjId(i)) for i in range(1, 6)] == made


async def test_of_a_call_that_was_unknown_only_what_somebody_else_changed_stays_unknown(
    make_world: Any, settle: Any
) -> None:
    world = await make_world()
    ours, theirs = world.process("ours"), world.process("theirs")
    taken = await theirs.store.insert(NOTE, ObjId(1), Note(text="theirs"))
    ours.backend.faults = ["before"]
    batcher = Batcher(ours.backend, ours.clock, ours.rng)

    async def write() -> Any:
        return await asyncio.gather(
            batcher.insert(ours.store, NOTE, ObjId(1), Note(text="ours")),
            batcher.insert(ours.store, NOTE, ObjId(2), Note(text="ours")),
            return_exceptions=True,
        )

    first, second = await settle(world, write())

    assert isinstance(first, OutcomeUnknown)
    assert second == await theirs.store.fetch(NOTE, ObjId(2))
    assert await theirs.store.fetch(NOTE, ObjId(1)) == taken


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_deletion_once_unknown_stays_so_while_others_of_its_call_are_settled(
    make_world: Any, settle: Any, fault: str
) -> None:
    world = await make_world()
    process = world.process()
    old = await process.store.insert(NOTE, ObjId(1), note(1))
    process.backend.faults = [fault]
    batcher = Batcher(process.backend, process.clock, process.rng)

    async def write() -> Any:
        return await asyncio.gather(
            batcher.delete_if(process.store, NOTE, old),
            batcher.insert(process.store, NOTE, ObjId(2), note(2)),
            return_exceptions=True,
        )

    deleted, inserted = await settle(world, write())

    assert isinstance(deleted, OutcomeUnknown)
    assert inserted == await process.store.fetch(NOTE, ObjId(2))
