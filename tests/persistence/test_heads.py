import asyncio
import gc
import weakref
from collections.abc import Sequence

import pytest

from cynosure.common.errors import NotFound, Unavailable
from cynosure.persistence.heads import Heads
from cynosure.persistence.spi import CatalogId, ObjId, RealmId, Reference, RefKey
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


def key(name: str = "main") -> RefKey:
    return RefKey(RealmId("r"), CatalogId("c"), name)


def ref(head: int, name: str = "main") -> Reference:
    return Reference(key(name), ObjId(head), 0, (), 0)


class HeldBackend:
    """Reads take their answer when they start, and return it when the test lets them."""

    def __init__(self) -> None:
        self.refs: dict[RefKey, Reference] = {}
        self.reads: list[tuple[list[RefKey], asyncio.Future[BaseException | None]]] = []
        self.answers_at_once = False
        self.read_at_once: list[list[RefKey]] = []

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        if not self.answers_at_once:
            return None
        self.read_at_once.append(list(keys))
        return [self.refs.get(key) for key in keys]

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        answer = [self.refs.get(key) for key in keys]
        released: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.reads.append((list(keys), released))
        error = await released
        if error is not None:
            raise error
        return answer

    def move(self, head: int, name: str = "main") -> None:
        self.refs[key(name)] = ref(head, name)

    def release(self, number: int, error: BaseException | None = None) -> None:
        self.reads[number][1].set_result(error)


@pytest.fixture
def backend() -> HeldBackend:
    backend = HeldBackend()
    backend.move(1)
    return backend


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def heads(backend: HeldBackend, clock: ManualClock) -> Heads:
    return Heads(backend, clock)


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def arrive(heads: Heads, name: str = "main") -> "asyncio.Task[Reference | None]":
    """A reader that has arrived, and whose read has started if it can."""
    reader = asyncio.create_task(heads.find(key(name)))
    await turn()
    return reader


async def test_readers_that_arrive_together_share_one_read(heads: Heads, backend: HeldBackend) -> None:
    readers = [asyncio.create_task(heads.find(key())) for _ in range(50)]
    await turn()
    backend.release(0)

    assert {(await reader).head for reader in readers} == {1}
    assert len(backend.reads) == heads.reads == 1


async def test_a_reader_that_arrives_during_a_read_gets_a_later_one(
    heads: Heads, backend: HeldBackend
) -> None:
    """I12."""
    early = await arrive(heads)
    backend.move(2)  # acknowledged to its writer before the late reader arrives

    late = await arrive(heads)
    backend.release(0)
    backend.release(1)

    assert (await early).head == 1
    assert (await late).head == 2


async def test_those_who_find_two_reads_under_way_share_the_next(heads: Heads, backend: HeldBackend) -> None:
    first, second = await arrive(heads), await arrive(heads)
    backend.move(3)
    waiting = [await arrive(heads) for _ in range(20)]

    assert len(backend.reads) == 2
    backend.release(1)
    await turn()
    assert len(backend.reads) == 3
    backend.release(2)

    assert {(await reader).head for reader in waiting} == {3}
    backend.release(0)
    assert (await first).head == (await second).head == 1


async def test_a_read_that_hangs_does_not_hold_up_the_next(heads: Heads, backend: HeldBackend) -> None:
    hanging = await arrive(heads)
    for number in range(1, 4):
        reader = await arrive(heads)
        backend.release(number)
        assert (await reader).head == 1

    backend.release(0)
    assert (await hanging).head == 1


async def test_different_references_share_a_round_trip(heads: Heads, backend: HeldBackend) -> None:
    backend.move(7, "grants")

    loading = asyncio.create_task(heads.load_many([key("main"), key("grants"), key("main")]))
    await turn()
    backend.release(0)
    if len(backend.reads) > 1:
        backend.release(1)

    assert [found.head for found in await loading] == [1, 7, 1]
    assert backend.reads[0][0] == [key("main"), key("grants")]
    assert len(backend.reads) == 1


async def test_cancelling_one_reader_leaves_the_answer_to_the_others(
    heads: Heads, backend: HeldBackend
) -> None:
    leaving, staying = asyncio.create_task(heads.find(key())), asyncio.create_task(heads.find(key()))
    await turn()

    leaving.cancel()
    await turn()
    backend.release(0)

    assert (await staying).head == 1
    assert leaving.cancelled()


async def test_cancelling_all_readers_leaves_the_next_one_unharmed(
    heads: Heads, backend: HeldBackend
) -> None:
    leaving = await arrive(heads)
    leaving.cancel()
    await turn()
    backend.move(2)

    reader = await arrive(heads)
    backend.release(0)
    backend.release(1)

    assert (await reader).head == 2


async def test_an_error_reaches_all_who_shared_the_read_and_nobody_else(
    heads: Heads, backend: HeldBackend
) -> None:
    sharing = [asyncio.create_task(heads.find(key())) for _ in range(3)]
    await turn()
    later = await arrive(heads)

    backend.release(0, Unavailable("The database does not answer"))
    backend.release(1)

    outcomes = await asyncio.gather(*sharing, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert (await later).head == 1


async def test_after_an_error_reading_goes_on(heads: Heads, backend: HeldBackend) -> None:
    failing = await arrive(heads)
    backend.release(0, Unavailable("The database does not answer"))
    await asyncio.wait([failing])

    reader = await arrive(heads)
    backend.release(1)

    assert isinstance(failing.exception(), Unavailable)
    assert (await reader).head == 1


async def test_an_error_that_nobody_waits_for_is_no_warning(heads: Heads, backend: HeldBackend) -> None:
    leaving = await arrive(heads)
    leaving.cancel()
    await turn()

    backend.release(0, Unavailable("The database does not answer"))
    await turn()

    assert leaving.cancelled()


async def test_a_missing_reference_is_none_for_find_and_named_by_load(
    heads: Heads, backend: HeldBackend
) -> None:
    finding = await arrive(heads, "nowhere")
    backend.release(0)
    loading = asyncio.create_task(heads.load(key("nowhere")))
    await turn()
    backend.release(1)

    assert await finding is None
    with pytest.raises(NotFound, match="cynosure store init") as missing:
        await loading
    assert missing.value.details == {"realm": "r", "catalog": "c", "name": "nowhere"}


async def test_by_default_nothing_is_served_from_memory(heads: Heads, backend: HeldBackend) -> None:
    """I12."""
    heads.observe(ref(1), sent_s=0.0)
    reader = await arrive(heads)
    backend.release(0)
    await reader

    await arrive(heads)

    assert len(backend.reads) == 2


# --- databases that answer at once --------------------------------------------------------------------


async def test_a_database_that_answers_at_once_is_asked_anew_by_every_reader(
    heads: Heads, backend: HeldBackend
) -> None:
    """I12."""
    backend.answers_at_once = True
    found = []
    for head in range(1, 5):
        backend.move(head)
        found.append((await heads.find(key())).head)

    assert found == [1, 2, 3, 4]
    assert heads.reads == len(backend.read_at_once) == 4
    assert backend.reads == []


async def test_a_reader_that_is_answered_at_once_does_not_wait_for_reads_under_way(
    heads: Heads, backend: HeldBackend
) -> None:
    """I12."""
    hanging = [await arrive(heads) for _ in range(3)]
    backend.answers_at_once = True
    backend.move(2)

    assert (await heads.find(key())).head == 2
    assert not any(reader.done() for reader in hanging)

    backend.release(0)
    backend.release(1)
    await turn()
    backend.release(2)
    assert [(await reader).head for reader in hanging] == [1, 1, 2]


async def test_a_reader_that_is_not_answered_at_once_asks_again_and_waits(
    heads: Heads, backend: HeldBackend
) -> None:
    backend.answers_at_once = True
    await heads.find(key())
    backend.answers_at_once = False  # as a database that another process keeps locked for a moment

    reader = await arrive(heads)
    backend.release(0)

    assert (await reader).head == 1
    assert heads.reads == 2


async def test_several_references_are_read_at_once_together(heads: Heads, backend: HeldBackend) -> None:
    backend.answers_at_once = True
    backend.move(7, "grants")

    found = await heads.load_many([key("main"), key("grants"), key("main")])

    assert [ref.head for ref in found] == [1, 7, 1]
    assert backend.read_at_once == [[key("main"), key("grants"), key("main")]]
    with pytest.raises(NotFound, match="cynosure store init"):
        await heads.load_many([key("main"), key("nowhere")])


# --- bounded staleness, which is opt-in -------------------------------------------------------------


@pytest.fixture
def stale_heads(backend: HeldBackend, clock: ManualClock) -> Heads:
    return Heads(backend, clock, max_staleness_s=5)


async def test_a_head_is_served_from_memory_until_it_may_be_too_old(
    stale_heads: Heads, backend: HeldBackend, clock: ManualClock
) -> None:
    reader = await arrive(stale_heads)
    await clock.advance(2)  # its age counts from the start of the read
    backend.release(0)
    await reader
    backend.move(2)

    await clock.advance(3)
    from_memory = await stale_heads.find(key())
    await clock.advance(0.001)
    fresh = await arrive(stale_heads)
    backend.release(1)

    assert from_memory.head == 1
    assert (await fresh).head == 2


async def test_a_process_sees_its_own_commit_at_once(
    stale_heads: Heads, backend: HeldBackend, clock: ManualClock
) -> None:
    reader = await arrive(stale_heads)
    backend.release(0)
    await reader

    stale_heads.observe(ref(2), sent_s=clock.monotonic_s())

    assert (await stale_heads.find(key())).head == 2


async def test_a_read_from_before_the_own_commit_does_not_hide_it(
    stale_heads: Heads, backend: HeldBackend, clock: ManualClock
) -> None:
    reader = await arrive(stale_heads)
    await clock.advance(0.5)
    backend.move(2)
    stale_heads.observe(ref(2), sent_s=clock.monotonic_s() - 1.0)
    backend.release(0)
    await reader

    assert (await stale_heads.find(key())).head == 2


async def test_the_age_of_an_own_commit_counts_from_when_it_was_sent(
    stale_heads: Heads, backend: HeldBackend, clock: ManualClock
) -> None:
    sent_s = clock.monotonic_s()
    await clock.advance(4.0)  # The process was stopped before it saw the answer, and others went on.
    stale_heads.observe(ref(2), sent_s=sent_s)
    backend.move(3)

    await clock.advance(1.5)
    reader = await arrive(stale_heads)
    backend.release(0)

    assert (await reader).head == 3


async def test_an_absent_reference_is_never_served_from_memory(
    stale_heads: Heads, backend: HeldBackend
) -> None:
    finding = await arrive(stale_heads, "new")
    backend.release(0)
    await finding
    backend.move(4, "new")

    again = await arrive(stale_heads, "new")
    backend.release(1)

    assert (await again).head == 4


async def test_a_head_read_at_once_ages_as_one_that_was_waited_for(
    stale_heads: Heads, backend: HeldBackend, clock: ManualClock
) -> None:
    backend.answers_at_once = True
    await stale_heads.find(key())
    backend.move(2)

    await clock.advance(5)
    from_memory = await stale_heads.find(key())
    await clock.advance(0.001)
    fresh = await stale_heads.find(key())

    assert (from_memory.head, fresh.head) == (1, 2)
    assert len(backend.read_at_once) == 2


async def test_several_heads_at_once_are_served_from_memory_where_they_may_be(
    stale_heads: Heads, backend: HeldBackend
) -> None:
    backend.answers_at_once = True
    backend.move(7, "grants")
    await stale_heads.find(key())
    backend.move(2)

    found = await stale_heads.load_many([key("main"), key("grants")])

    assert [ref.head for ref in found] == [1, 7]


async def test_who_asks_for_a_fresh_head_is_not_given_a_remembered_one(
    stale_heads: Heads, backend: HeldBackend, clock: ManualClock
) -> None:
    backend.answers_at_once = True
    await stale_heads.find(key())
    backend.move(2)
    await clock.advance(1)

    fresh = await stale_heads.load(key(), is_fresh=True)

    assert fresh.head == 2
    assert (await stale_heads.find(key())).head == 2


async def test_heads_that_are_read_ahead_share_one_round_trip(backend: HeldBackend, heads: Heads) -> None:
    backend.move(7, "grants")

    heads.read_ahead([key(), key("grants")])
    await asyncio.sleep(0)
    backend.release(0)

    assert [(await heads.load(key())).head, (await heads.load(key("grants"))).head] == [1, 7]
    assert [set(keys) for keys, _ in backend.reads] == [{key(), key("grants")}]


async def test_a_head_that_was_read_ahead_is_not_used_twice(backend: HeldBackend, heads: Heads) -> None:
    heads.read_ahead([key()])
    await asyncio.sleep(0)
    backend.release(0)
    assert (await heads.load(key())).head == 1
    backend.move(2)

    again = asyncio.create_task(heads.load(key()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    backend.release(1)

    assert (await again).head == 2


async def test_who_must_know_the_newest_head_does_not_get_the_one_read_ahead(
    backend: HeldBackend, heads: Heads
) -> None:
    heads.read_ahead([key()])
    await asyncio.sleep(0)
    backend.release(0)
    backend.move(2)

    fresh = asyncio.create_task(heads.load(key(), is_fresh=True))
    for _ in range(3):
        await asyncio.sleep(0)
    backend.release(1)

    assert (await fresh).head == 2


async def test_another_request_does_not_get_what_was_read_ahead(backend: HeldBackend, heads: Heads) -> None:
    async def first() -> None:
        heads.read_ahead([key()])
        await asyncio.sleep(0)
        backend.release(0)

    await asyncio.create_task(first())
    backend.move(2)

    other = asyncio.create_task(heads.load(key()))
    for _ in range(3):
        await asyncio.sleep(0)
    backend.release(1)

    assert (await other).head == 2


async def test_a_task_that_a_request_began_does_not_get_what_was_read_ahead(
    backend: HeldBackend, heads: Heads
) -> None:
    """I12. Such a task may outlive the request and work for others, as a committer's does."""
    backend.answers_at_once = True
    heads.read_ahead([key()])
    backend.move(2)  # acknowledged before the task begins

    found = await asyncio.create_task(heads.find(key()))

    assert found.head == 2


async def test_looking_at_what_was_read_ahead_takes_nothing_away(backend: HeldBackend, heads: Heads) -> None:
    backend.answers_at_once = True
    heads.read_ahead([key()])

    seen = [heads.get_ahead(key()), heads.get_ahead(key()), heads.take_ahead(key())]

    assert seen == [ref(1)] * 3
    assert heads.take_ahead(key()) is None
    assert heads.get_ahead(key()) is None


async def test_what_is_still_being_read_cannot_be_looked_at(backend: HeldBackend, heads: Heads) -> None:
    heads.read_ahead([key()])
    assert heads.get_ahead(key()) is None
    assert heads.take_ahead(key()) is None
    await turn()
    backend.release(0)
    await turn()

    assert heads.get_ahead(key()) == ref(1)


async def test_a_request_sees_what_it_did_itself(backend: HeldBackend, heads: Heads) -> None:
    backend.answers_at_once = True
    heads.read_ahead([key()])
    backend.move(2)

    heads.drop_ahead(key())

    assert (await heads.load(key())).head == 2


async def test_two_heads_are_looked_at_together_or_not_at_all(backend: HeldBackend, heads: Heads) -> None:
    backend.answers_at_once = True
    backend.move(5, "other")
    heads.read_ahead([key(), key("other")])

    assert heads.get_both_ahead(key(), key("other")) == (ref(1), ref(5, "other"))
    assert heads.get_both_ahead(key("other"), key()) == (ref(5, "other"), ref(1))
    heads.take_ahead(key("other"))
    assert heads.get_both_ahead(key(), key("other")) is None
    assert heads.get_both_ahead(key("other"), key()) is None


async def test_a_request_that_read_ahead_is_gone_without_the_garbage_collector(
    backend: HeldBackend, heads: Heads
) -> None:
    backend.answers_at_once = True

    async def request() -> None:
        heads.read_ahead([key()])

    gc.disable()
    try:
        task = asyncio.create_task(request())
        await task
        seen = weakref.ref(task)
        del task
        await turn()
        assert seen() is None
    finally:
        gc.enable()
