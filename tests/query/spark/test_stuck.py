"""When a driver is ended for what runs there for nobody."""

import pytest

from cynosure.query.spark.stuck import StuckWatch


@pytest.fixture
def watch() -> StuckWatch:
    return StuckWatch(lambda: 2)


def look(watch: StuckWatch, *, tasks: tuple[int, ...] = (), runs: tuple[int, ...] = (), idle: bool) -> bool:
    return watch.note(tasks=frozenset(tasks), runs=frozenset(runs), cores=2, is_idle=idle)


@pytest.mark.parametrize("idle", [True, False])
def test_a_driver_that_ends_what_it_is_told_to_is_kept(watch: StuckWatch, idle: bool):
    """There is always something that is about to end, and never the same for long."""
    for at in range(40):
        assert not look(watch, tasks=(at, at + 1, at + 2), runs=(at, at + 1, at + 2), idle=idle)


@pytest.mark.parametrize("kind", ["tasks", "runs"])
def test_an_idle_driver_with_something_that_stays_is_ended(watch: StuckWatch, kind: str):
    seen = [look(watch, **{kind: (7, at)}, idle=True) for at in range(10, 14)]
    assert seen == [False, False, False, True]


@pytest.mark.parametrize("kind", ["tasks", "runs"])
def test_a_driver_that_others_use_is_ended_when_hardly_anything_is_left_of_it(watch: StuckWatch, kind: str):
    assert not any(look(watch, **{kind: (7,)}, idle=False) for _ in range(9))
    seen = [look(watch, **{kind: (7, 8)}, idle=False) for _ in range(4)]
    assert seen == [False, False, False, True]


def test_what_was_away_for_a_moment_is_looked_at_anew(watch: StuckWatch):
    for _ in range(5):
        assert not any(look(watch, tasks=(7,), idle=True) for _ in range(3))
        assert not look(watch, idle=True)
