"""Steps that hang: an error in time, and what was left behind counts until it has ended."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cynosure.query.scan import bounded
from cynosure.query.scan.bounded import Bounded, may_begin
from cynosure.query.scan.memory import Budget, Held, SharedMemory
from cynosure.storage.errors import StorageUnavailable

SIZE = 1_000
PATIENCE_S = 60


def detach_nothing() -> Callable[[], None]:
    raise AssertionError("nothing is left behind")


class Hanging:
    """Gives one, and then nothing until it is let go."""

    def __init__(self) -> None:
        self.shared = SharedMemory()
        self.budget = Budget(10 * SIZE, shared=self.shared)
        assert self.budget.try_take(SIZE)
        self.held = Held(self.budget, SIZE)
        self.let_go = threading.Event()
        self.has_ended = threading.Event()
        self.steps = Bounded(self._steps, 0.1, self.held.detach)

    def _steps(self) -> Iterator[int]:
        try:
            yield 1
            assert self.let_go.wait(PATIENCE_S)
            yield 2
        finally:
            self.has_ended.set()

    def hang(self) -> None:
        assert next(self.steps) == 1
        begun_s = time.monotonic()
        with pytest.raises(StorageUnavailable):
            next(self.steps)
        assert time.monotonic() - begun_s < 5
        self.steps.close()
        self.steps.close()
        self.held.give_back()
        self.budget.close()

    def end(self) -> None:
        self.let_go.set()
        self.steps._thread.join(PATIENCE_S)


@pytest.fixture
def hanging() -> Iterator[Callable[[], Hanging]]:
    made: list[Hanging] = []

    def make() -> Hanging:
        made.append(Hanging())
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_steps_are_given_as_they_are() -> None:
    steps: Bounded[Any] = Bounded(lambda: iter([1, None, 3]), 10, detach_nothing)
    assert list(steps) == [1, None, 3]
    steps.close()
    assert not steps._thread.is_alive()


@pytest.mark.parametrize("error", [ValueError("what it says"), SystemExit(3)])
def test_an_error_of_a_step_is_raised_where_it_was_asked_for(error: BaseException) -> None:
    def fail() -> Iterator[int]:
        yield 1
        raise error

    steps = Bounded(fail, 10, detach_nothing)
    assert next(steps) == 1
    with pytest.raises(type(error)) as raised:
        next(steps)
    assert raised.value is error
    steps.close()
    assert not steps._thread.is_alive()


def test_one_that_is_closed_early_ends() -> None:
    steps = Bounded(lambda: iter(range(10)), 10, detach_nothing)
    assert next(steps) == 0
    steps.close()
    assert not steps._thread.is_alive()


def test_one_that_hangs_is_left_behind_and_counted_until_it_ends(hanging: Callable[[], Hanging]) -> None:
    one = hanging()
    one.hang()
    assert one.shared.held_bytes == SIZE
    assert not one.has_ended.is_set()
    one.end()
    assert one.has_ended.is_set()
    assert one.shared.held_bytes == 0
    assert one.steps._answers.empty()


def test_while_many_are_left_behind_none_begins(
    hanging: Callable[[], Hanging], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MOST_LEFT", 2)
    made = [hanging(), hanging()]
    for each in made:
        assert may_begin()
        each.hang()
    assert not may_begin()
    made[0].end()
    assert may_begin()
