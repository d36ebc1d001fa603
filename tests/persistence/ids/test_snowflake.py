import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, ClockFault, CynosureError, LeaseLost, Unavailable
from cynosure.persistence.ids.snowflake import (
    EPOCH_MS,
    MAX_BORROWED_MS,
    SPECIAL_MS,
    IdParts,
    SnowflakeIds,
    compose,
    decompose,
    named_id,
    snowflake_ms,
    timestamp_us_of,
)
from cynosure.persistence.spi import MAX_ID, ObjId


class StillClock:
    """Wall and monotonic time set by hand, without an event loop."""

    def __init__(self, now_ms: int = EPOCH_MS + 1_000_000, monotonic_s: float = 50.0) -> None:
        self.now_ms = now_ms
        self.at_s = monotonic_s

    def now_us(self) -> int:
        return self.now_ms * 1000

    def monotonic_s(self) -> float:
        return self.at_s

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a generator never sleeps")


def granted(clock: StillClock, node: int = 5, lease_ms: int = 60_000, not_before_ms: int = 0) -> SnowflakeIds:
    ids = SnowflakeIds(clock)
    ids.grant(
        node,
        not_before_ms=not_before_ms,
        until_ms=clock.now_ms - EPOCH_MS + lease_ms,
        deadline_s=clock.at_s + lease_ms / 1000,
    )
    return ids


# --- layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj_id", "parts", "unix_us"),
    [
        (0, IdParts(0, 0, 0), 1_735_689_600_000_000),
        (1023 << 12, IdParts(0, 1023, 0), 1_735_689_600_000_000),
        (4_194_304_000, IdParts(1000, 0, 0), 1_735_689_601_000_000),
        (132_271_570_944_020_481, IdParts(31_536_000_000, 5, 1), 1_767_225_600_000_000),
        (9_223_372_036_854_775_807, IdParts(2_199_023_255_551, 1023, 4095), 3_934_712_855_551_000),
    ],
)
def test_golden_ids_keep_their_meaning_for_ever(obj_id: int, parts: IdParts, unix_us: int) -> None:
    assert compose(*parts) == obj_id
    assert decompose(ObjId(obj_id)) == parts
    assert timestamp_us_of(ObjId(obj_id)) == unix_us


@given(timestamp_ms=st.integers(0, (1 << 41) - 1), node=st.integers(0, 1023), sequence=st.integers(0, 4095))
def test_decompose_reverses_compose(timestamp_ms: int, node: int, sequence: int) -> None:
    obj_id = compose(timestamp_ms, node, sequence)

    assert decompose(obj_id) == (timestamp_ms, node, sequence)
    assert 0 <= obj_id <= MAX_ID
    assert snowflake_ms(timestamp_us_of(obj_id)) == timestamp_ms


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ((-1, 0, 0), "timestamp_ms"),
        ((1 << 41, 0, 0), "timestamp_ms"),
        ((0, 1024, 0), "node"),
        ((0, 0, 4096), "sequence"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_name(parts: tuple[int, int, int], field: str) -> None:
    with pytest.raises(BadInput) as refused:
        compose(*parts)

    assert refused.value.field == field


def test_golden_named_ids() -> None:
    assert named_id("gc") == 5_455_709_836_446_161_609
    assert named_id("") == 1_322_469_859_529_832_740


@given(name=st.text())
def test_named_ids_are_ordinary_ids(name: str) -> None:
    assert SPECIAL_MS << 22 <= named_id(name) <= MAX_ID


# --- generator --------------------------------------------------------------------------------------


def test_ids_carry_the_clock_the_node_and_a_sequence() -> None:
    clock = StillClock()
    ids = granted(clock, node=7)

    first, second = ids.next(), ids.next()
    clock.now_ms += 1
    third = ids.next()

    now_ms = 1_000_000
    assert [decompose(obj_id) for obj_id in (first, second, third)] == [
        (now_ms, 7, 0),
        (now_ms, 7, 1),
        (now_ms + 1, 7, 0),
    ]


def test_without_a_grant_there_are_no_ids() -> None:
    with pytest.raises(LeaseLost):
        SnowflakeIds(StillClock()).next()


def test_the_4097th_id_of_a_millisecond_borrows_from_the_next() -> None:
    ids = granted(StillClock())

    made = [decompose(ids.next()) for _ in range(4097)]

    assert made[4095] == (1_000_000, 5, 4095)
    assert made[4096] == (1_000_001, 5, 0)


def test_borrowing_is_bounded_and_ends_when_the_clock_catches_up() -> None:
    clock = StillClock()
    ids = granted(clock, not_before_ms=1_000_000 + MAX_BORROWED_MS)
    for _ in range(4096):
        last = ids.next()

    with pytest.raises(Unavailable) as refused:
        ids.next()
    clock.now_ms += 1

    assert not isinstance(refused.value, LeaseLost)
    assert refused.value.details == {"ahead_ms": MAX_BORROWED_MS + 1}
    assert ids.next() == compose(decompose(last).timestamp_ms + 1, 5, 0)


def test_borrowing_stops_at_the_end_of_the_lease() -> None:
    clock = StillClock()
    ids = granted(clock, lease_ms=2)
    made = [ids.next() for _ in range(4096 * 2)]

    with pytest.raises(LeaseLost):
        ids.next()

    assert decompose(made[-1]).timestamp_ms == 1_000_001


def test_no_id_has_the_timestamp_at_which_the_lease_ends() -> None:
    clock = StillClock()
    ids = granted(clock, lease_ms=100)
    clock.now_ms += 99
    last = ids.next()
    clock.now_ms += 1

    with pytest.raises(LeaseLost):
        ids.next()

    assert decompose(last).timestamp_ms == 1_000_099


def test_no_id_after_the_monotonic_deadline_even_if_the_wall_clock_stands_still() -> None:
    clock = StillClock()
    ids = granted(clock, lease_ms=100)
    ids.next()
    clock.at_s += 0.1

    with pytest.raises(LeaseLost):
        ids.next()


def test_a_used_up_grant_calls_for_its_keeper() -> None:
    clock = StillClock()
    calls: list[str] = []
    ids = SnowflakeIds(clock, on_exhausted=lambda: calls.append("keeper"))
    ids.grant(1, not_before_ms=0, until_ms=1_000_001, deadline_s=60)

    clock.now_ms += 1
    with pytest.raises(LeaseLost):
        ids.next()

    assert calls == ["keeper"]


def test_no_id_before_the_end_of_the_previous_holders_lease() -> None:
    clock = StillClock()
    ids = granted(clock, not_before_ms=1_000_003)

    assert decompose(ids.next()) == (1_000_003, 5, 0)


def test_no_ordinary_id_is_a_special_one() -> None:
    clock = StillClock(now_ms=EPOCH_MS + SPECIAL_MS - 1)
    ids = granted(clock)

    with pytest.raises(ClockFault):
        ids.next()
    clock.now_ms += 1

    assert decompose(ids.next()).timestamp_ms == SPECIAL_MS


@pytest.mark.parametrize("now_ms", [0, EPOCH_MS, EPOCH_MS + (1 << 41)])
def test_a_clock_outside_the_range_of_ids_is_a_clock_fault(now_ms: int) -> None:
    clock = StillClock(now_ms=now_ms)
    ids = SnowflakeIds(clock)
    ids.grant(1, not_before_ms=0, until_ms=1 << 42, deadline_s=60)

    with pytest.raises(ClockFault, match="Set the clock"):
        ids.next()


def test_a_small_step_back_is_counted_through() -> None:
    clock = StillClock()
    ids = granted(clock)
    before = ids.next()
    clock.now_ms -= 10

    assert ids.next() == before + 1


def test_a_large_step_back_is_refused_until_the_clock_has_caught_up() -> None:
    clock = StillClock()
    ids = granted(clock)
    before = ids.next()

    clock.now_ms -= 11
    with pytest.raises(ClockFault) as refused:
        ids.next()
    clock.now_ms += 11

    assert refused.value.details == {"step_ms": 11}
    assert "caught up" in refused.value.fix
    assert ids.next() == before + 1


def test_a_new_node_id_does_not_make_ids_go_back() -> None:
    clock = StillClock()
    ids = granted(clock, node=900)
    before = ids.next()

    ids.grant(2, not_before_ms=0, until_ms=2_000_000, deadline_s=1000)

    assert ids.next() > before


@settings(max_examples=30)
@given(seed=st.integers(0, 1 << 30))
def test_ids_are_unique_and_increasing_under_clock_steps_and_lease_changes(seed: int) -> None:
    """I14. Every node id's timestamps are handed from holder to holder; the model knows what each may use."""
    rng = random.Random(seed)
    clock = StillClock()
    ids = SnowflakeIds(clock)
    free_from_ms = dict.fromkeys(range(4), 0)
    node, not_before_ms, until_ms, deadline_s = 0, 0, 0, 0.0
    made: list[ObjId] = []
    others: list[ObjId] = []

    for _ in range(200):
        action = rng.random()
        if action < 0.5:
            for _ in range(rng.choices([1, 3, 5000], [10, 10, 1])[0]):
                try:
                    obj_id = ids.next()
                except CynosureError:
                    break
                parts = decompose(obj_id)
                assert parts.node == node
                assert not_before_ms <= parts.timestamp_ms < until_ms
                assert clock.at_s < deadline_s
                made.append(obj_id)
        elif action < 0.7:
            clock.now_ms += rng.choice([0, 1, 1, 5, 200])
            clock.at_s += rng.choice([0.001, 0.01, 1])
        elif action < 0.8:
            clock.now_ms += rng.choice([-5_000, -11, -10, -1, 1_000, 30_000])
        elif action < 0.9:
            until_ms = max(until_ms, snowflake_ms(clock.now_us()) + 1_000)
            deadline_s = clock.at_s + 1
            free_from_ms[node] = max(free_from_ms[node], until_ms)
            ids.extend(until_ms=until_ms, deadline_s=deadline_s)
        else:
            # The lease goes to somebody else, who uses the very next timestamp.
            others.append(compose(max(free_from_ms[node], SPECIAL_MS), node, 0))
            free_from_ms[node] = max(free_from_ms[node], SPECIAL_MS) + 1
            node = rng.randrange(4)
            not_before_ms = free_from_ms[node]
            until_ms = max(not_before_ms, snowflake_ms(clock.now_us())) + 1_000
            deadline_s = clock.at_s + 1
            free_from_ms[node] = until_ms
            ids.grant(node, not_before_ms=not_before_ms, until_ms=until_ms, deadline_s=deadline_s)

    assert made == sorted(made)
    assert len(set(made) | set(others)) == len(made) + len(others)
