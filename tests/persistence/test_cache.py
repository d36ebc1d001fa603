import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.persistence.cache import ABSENT, ObjectCache
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio

ENTRY_BYTES = 250


def key(number: int) -> tuple[str, str, str, int]:
    return ("r", "c", "t", number)


def test_the_least_recently_used_go_first_when_the_weight_is_reached() -> None:
    cache = ObjectCache(3 * (ENTRY_BYTES + 100), ManualClock())
    for number in range(3):
        cache.put(key(number), f"value {number}", 100)
    cache.get(key(0))

    cache.put(key(3), "value 3", 100)

    assert [cache.get(key(number)) for number in range(4)] == ["value 0", None, "value 2", "value 3"]
    assert (cache.hits, cache.misses) == (4, 1)


def test_a_heavy_value_pushes_out_as_many_as_it_needs() -> None:
    cache = ObjectCache(3000, ManualClock())
    for number in range(4):
        cache.put(key(number), "light", 400)

    cache.put(key(9), "heavy", 2000)

    assert [cache.get(key(number)) is not None for number in (0, 1, 2, 3, 9)] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_a_value_heavier_than_the_cache_is_not_kept_and_pushes_nothing_out() -> None:
    cache = ObjectCache(1000, ManualClock())
    cache.put(key(1), "light", 100)

    cache.put(key(2), "too heavy", 1000)

    assert cache.get(key(1)) == "light"
    assert cache.get(key(2)) is None


def test_replacing_a_value_replaces_its_weight() -> None:
    cache = ObjectCache(10_000, ManualClock())
    cache.put(key(1), "heavy", 5000)

    cache.put(key(1), "light", 10)

    assert cache.weight_bytes == ENTRY_BYTES + 10
    assert len(cache) == 1


async def test_a_value_with_an_expiry_is_gone_when_it_has_passed() -> None:
    clock = ManualClock()
    cache = ObjectCache(10_000, clock)
    cache.put(key(1), "brief", 10, expires_after_s=5)
    cache.put(key(2), "lasting", 10)

    await clock.advance(4.9)
    before = cache.get(key(1))
    await clock.advance(0.1)

    assert before == "brief"
    assert cache.get(key(1)) is None
    assert cache.get(key(2)) == "lasting"
    assert cache.weight_bytes == ENTRY_BYTES + 10


async def test_setting_the_wall_clock_moves_no_expiry() -> None:
    clock = ManualClock()
    cache = ObjectCache(10_000, clock)
    cache.put(key(1), "brief", 10, expires_after_s=5)

    clock.step_wall(-3600)
    await clock.advance(5)

    assert cache.get(key(1)) is None


def test_known_absence_is_not_the_same_as_not_known() -> None:
    cache = ObjectCache(10_000, ManualClock())

    cache.put(key(1), ABSENT, 0, expires_after_s=5)

    assert cache.get(key(1)) is ABSENT
    assert cache.get(key(2)) is None


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["put", "get", "discard", "clear"]), st.integers(0, 9), st.integers(0, 900)
        ),
        max_size=60,
    )
)
def test_the_weight_is_that_of_what_is_kept_and_never_above_the_capacity(
    steps: list[tuple[str, int, int]],
) -> None:
    cache = ObjectCache(2000, ManualClock())
    weights: dict[int, int] = {}

    for step, number, weight in steps:
        if step == "put":
            cache.put(key(number), number, weight)
            weights[number] = weight + ENTRY_BYTES
        elif step == "get":
            assert cache.get(key(number)) in (None, number)
        elif step == "discard":
            cache.discard(key(number))
            assert cache.get(key(number)) is None
        else:
            cache.clear()

    kept = [number for number in range(10) if cache.get(key(number)) is not None]
    assert cache.weight_bytes == sum(weights[number] for number in kept) <= 2000
    assert len(cache) == len(kept)
