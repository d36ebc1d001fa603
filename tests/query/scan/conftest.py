"""What tests of scans share."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cynosure.query.scan import fast, governed
from cynosure.query.scan.memory import PROCESS


@pytest.fixture(autouse=True)
def others_hold_no_memory() -> None:
    """Scans that other tests left without an end give back what they hold when they are collected."""
    if PROCESS.held_bytes:
        gc.collect()


@pytest.fixture(autouse=True)
def small_files_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of tests are small, and are to go the fast path all the same."""
    monkeypatch.setattr(fast, "WORTH_BYTES", 0)


@pytest.fixture
def without_fast(monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Everything goes the complete path while this is open."""

    @contextmanager
    def switch() -> Iterator[None]:
        with monkeypatch.context() as patched:
            patched.setattr(governed, "read_fast", lambda *_: None)
            yield

    return switch


@pytest.fixture
def only_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that goes the complete path fails the test."""

    def refuse(*_: object) -> None:
        raise AssertionError("the complete path was taken")

    monkeypatch.setattr(governed, "read_complete", refuse)
