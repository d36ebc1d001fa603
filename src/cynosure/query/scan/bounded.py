"""Steps of an iterator that may hang, each within a time, in a thread that is left behind when it hangs.

DataFusion's client of S3 has limits of its own, which nobody can set: up to ten attempts and three minutes.
Whoever asks for a step waits for `storage.operation_timeout`; the thread ends when that client gives up.

A maintainer must not break: a thread that is left behind gives nothing any more, and what it holds counts
until it has ended; and while many are left, none is begun.
"""

from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final, Generic, TypeVar

from cynosure.storage.errors import StorageUnavailable

MOST_LEFT: Final = 8
_left: Final[set[Thread]] = set()
_lock: Final = Lock()

T = TypeVar("T")


def may_begin() -> bool:
    """Whether not too many were left behind."""
    with _lock:
        return len(_left) < MOST_LEFT


class Bounded(Generic[T]):
    """The steps. Used by one thread; `close` it."""

    def __init__(
        self,
        steps: Callable[[], Iterator[T]],
        timeout_s: float,
        detach: Callable[[], Callable[[], None]],
    ) -> None:
        """`steps` and all that it does runs in the thread.

        `detach` is called when that is left behind, and what it gives when it has ended.
        """
        self._steps = steps
        self._timeout_s = timeout_s
        self._detach = detach
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[T | BaseException] = SimpleQueue()
        self._is_stepping = False
        self._is_left = False
        self._is_over = False
        self._at_end: Callable[[], None] | None = None
        self._thread = Thread(target=self._run, name="bounded-read", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        """The next. `StorageUnavailable` when it does not come in time; then `close` it."""
        self._is_stepping = True
        self._asked.put(True)
        try:
            answer = self._answers.get(timeout=self._timeout_s)
        except Empty:
            raise StorageUnavailable("The storage does not answer or fails") from None
        self._is_stepping = False
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def close(self) -> None:
        """End it; what is in the middle of a step is left behind. Twice is fine."""
        self._asked.put(False)
        if self._is_stepping:
            self._leave()
        else:
            self._thread.join()

    def _leave(self) -> None:
        with _lock:
            if not (self._is_over or self._is_left):
                self._is_left = True
                self._at_end = self._detach()
                _left.add(self._thread)

    # The thread

    def _run(self) -> None:
        # Nothing that was read is held any more when this has returned.
        self._work()
        with _lock:
            _left.discard(self._thread)
            self._is_over = True
        if self._at_end is not None:
            self._at_end()

    def _work(self) -> None:
        steps: Iterator[T] | None = None
        while self._asked.get():
            try:
                if steps is None:
                    steps = self._steps()
                answer: T | BaseException = next(steps)
            except BaseException as error:
                # Raised where it was asked for. Panics of DataFusion are no `Exception`.
                answer = error
            if self._is_left:
                break
            self._answers.put(answer)
            del answer
