"""When something was last checked: bounded, by when it was asked (I119)."""

from datetime import timedelta

import pytest

from cynosure.federation.mirror.seen import Seen
from cynosure.federation.policy import CatalogPolicy
from cynosure.federation.stages.freshness import Freshness
from cynosure.testing.harness.clock import ManualClock
from tests.federation.seen_world import Far

pytestmark = pytest.mark.anyio

POLICY = CatalogPolicy(
    max_staleness=timedelta(seconds=10),
    stale_if_down=timedelta(seconds=60),
    is_read_only=False,
    credentials="own",
    grants="validated",
)
KEY = b"t1 a t"


@pytest.fixture
def freshness(manual_clock: ManualClock) -> Freshness:
    return Freshness(manual_clock, timedelta(seconds=1), most=2)


async def test_what_was_checked_is_fresh_for_a_while(
    far: Far, freshness: Freshness, manual_clock: ManualClock
) -> None:
    assert not freshness.is_fresh(far.catalog, KEY, POLICY)
    freshness.note(far.catalog, KEY, freshness.now_s())
    await manual_clock.advance(9.9)
    assert freshness.is_fresh(far.catalog, KEY, POLICY)
    await manual_clock.advance(0.1)
    assert not freshness.is_fresh(far.catalog, KEY, POLICY)


async def test_what_is_missing_is_so_for_a_shorter_while(
    far: Far, freshness: Freshness, manual_clock: ManualClock
) -> None:
    freshness.note(far.catalog, KEY, freshness.now_s(), is_missing=True)
    assert freshness.is_fresh(far.catalog, KEY, POLICY)
    await manual_clock.advance(1)
    assert not freshness.is_fresh(far.catalog, KEY, POLICY)


async def test_the_later_question_counts_whichever_was_answered_first(
    far: Far, freshness: Freshness, manual_clock: ManualClock
) -> None:
    earlier = freshness.now_s()
    await manual_clock.advance(0.5)
    freshness.note(far.catalog, KEY, freshness.now_s())
    freshness.note(far.catalog, KEY, earlier, is_missing=True)
    await manual_clock.advance(5)

    assert freshness.is_fresh(far.catalog, KEY, POLICY)


async def test_as_much_is_remembered_as_fits(far: Far, freshness: Freshness) -> None:
    for key in (b"1", b"2", b"3"):
        freshness.note(far.catalog, key, freshness.now_s())

    assert [freshness.is_fresh(far.catalog, key, POLICY) for key in (b"1", b"2", b"3")] == [False, True, True]


async def test_a_changed_definition_of_the_catalog_is_asked_anew(far: Far, freshness: Freshness) -> None:
    freshness.note(far.catalog, KEY, freshness.now_s())
    await far.set_properties(max_staleness="10s")

    assert not freshness.is_fresh(far.catalog, KEY, POLICY)


async def test_a_record_says_how_old_something_is_that_this_process_never_checked(
    far: Far, freshness: Freshness, manual_clock: ManualClock
) -> None:
    seen = Seen(seen_us=manual_clock.now_us())
    assert not freshness.is_showable(far.catalog, KEY, None, POLICY)
    await manual_clock.advance(60)
    assert freshness.is_showable(far.catalog, KEY, seen, POLICY)
    await manual_clock.advance(1)
    assert not freshness.is_showable(far.catalog, KEY, seen, POLICY)
    freshness.note(far.catalog, KEY, freshness.now_s())
    assert freshness.is_showable(far.catalog, KEY, seen, POLICY)
