"""The one thread that writes to the file, and the groups in which it does.

SQLite has one writer at a time and pays one disk flush per transaction. So all writes that wait when
the lock is had become one transaction, whoever asked for them: sixteen writers on sixteen references cost
one flush, not sixteen.

A write may be relaxed: it need not be on disk when it is acknowledged. A group of nothing else is committed
without the flush (`synchronous = NORMAL`, which in a write-ahead log costs durability and no consistency); in
the company of others it is flushed with them. The level cannot be changed within a transaction, so it is
chosen before the lock is asked for, by who waits then; who needs the flush and comes later has the next turn.
Not a connection of its own: each would forget its cached pages whenever the other one has written.

A maintainer must not break: one caller's failure never touches another's write. When anything in a group
fails, the group is rolled back and each of its writes runs again in a transaction of its own.
"""

import asyncio
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from cynosure.common.errors import CynosureError
from cynosure.persistence.backends.sqlite.connection import begin_write, move_log_into_file, set_flushing
from cynosure.persistence.backends.sqlite.faults import (
    is_refused_commit,
    moved_while_committing,
    translate,
    translate_commit,
)
from cynosure.persistence.backends.sqlite.same_file import SameFile

GROUP_SIZE: Final = 128
"""Most writes in one transaction, so that the first of them does not wait for a crowd."""
LOG_BYTES: Final = 4 << 20
"""About how much this process adds to the log before it moves the log into the file."""
_WRITE_BYTES: Final = 4 * 4096
"""About what a write adds to the log beside its blobs: a few pages of the trees."""

T = TypeVar("T")


class _Write(NamedTuple):
    run: Callable[[sqlite3.Connection], Any]
    blob_bytes: int
    outcome: "asyncio.Future[Any]"
    is_relaxed: bool


class _Outcome(NamedTuple):
    write: _Write
    value: Any
    error: Exception | None


class Writer:
    """Runs writes in the order of their arrival."""

    def __init__(
        self,
        path: Path,
        open_connection: Callable[[], sqlite3.Connection],
        busy_timeout_s: float,
        same_file: SameFile,
    ) -> None:
        self._path = path
        self._same_file = same_file
        self._open_connection = open_connection
        self._busy_timeout_s = busy_timeout_s
        self._waiting: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._next_turn: deque[_Write] = deque()
        self._connection: sqlite3.Connection | None = None
        self._is_flushing = True
        """Whether a COMMIT of the connection waits for the disk."""
        self._log_bytes = 0
        self._is_ending = False

    async def run(
        self, write: Callable[[sqlite3.Connection], T], blob_bytes: int = 0, *, is_relaxed: bool = False
    ) -> T:
        """Run `write` in a transaction that may hold other callers' writes as well; return after COMMIT.

        `is_relaxed`: without waiting for the disk.
        """
        if self._thread is None:
            # A daemon: a process that is ended without `close` must not hang on it.
            self._thread = threading.Thread(target=self._serve, name="cynosure-sqlite-writer", daemon=True)
            self._thread.start()
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put(_Write(write, blob_bytes, outcome, is_relaxed))
        return await outcome

    async def close(self) -> None:
        """Finish what waits, then end the thread."""
        if self._thread is not None:
            self._waiting.put(None)
            await asyncio.to_thread(self._thread.join)

    # --- on the writer thread --------------------------------------------------------------------

    def _serve(self) -> None:
        while self._next_turn or not self._is_ending:
            first = self._next_turn.popleft() if self._next_turn else self._waiting.get()
            if first is None:
                break
            outcomes = self._run_group(first)
            _deliver(outcomes)
            self._keep_log_short(outcomes)
        if self._connection is not None:
            self._connection.close()

    def _run_group(self, first: _Write) -> list[_Outcome]:
        taken = [first, *self._take_waiting(GROUP_SIZE - 1)]
        is_relaxed = all(write.is_relaxed for write in taken)
        try:
            connection = self._begin(is_relaxed=is_relaxed)
        except Exception as error:  # the outermost place of this thread, which must live on
            # All that wait have waited for the same lock; giving each its own bound helps nobody.
            return _fail([*taken, *self._take_waiting(GROUP_SIZE - len(taken))], error)
        # What arrived while another process had the lock joins in, unless it needs more than this group does.
        for write in self._take_waiting(GROUP_SIZE - len(taken)):
            (taken if write.is_relaxed or not is_relaxed else self._next_turn).append(write)
        group = [write for write in taken if not write.outcome.cancelled()]
        try:
            return self._attempt(connection, group)
        except Exception as error:  # of any kind: it is one caller's, not the group's
            if len(group) == 1:
                return _fail(group, error)
        return [outcome for write in group for outcome in self._run_alone(write)]

    def _run_alone(self, write: _Write) -> list[_Outcome]:
        try:
            return self._attempt(self._begin(is_relaxed=write.is_relaxed), [write])
        except Exception as error:  # as above
            return _fail([write], error)

    def _attempt(self, connection: sqlite3.Connection, group: Sequence[_Write]) -> list[_Outcome]:
        """Run and commit. An exception means that nothing was applied."""
        try:
            done = [_Outcome(write, write.run(connection), None) for write in group]
        except sqlite3.Error as error:
            self._abandon_transaction()
            raise translate(error, self._path) from error
        except BaseException:
            self._abandon_transaction()
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._abandon_transaction()
            translated = translate_commit(error, self._path)
            translated.__cause__ = error
            if is_refused_commit(error):
                raise translated from error
            return _fail(group, translated)
        if self._is_lost():
            return _fail(group, moved_while_committing(self._path))
        return done

    def _is_lost(self) -> bool:
        """Whether a COMMIT went into a file that may not have been the store's any more."""
        try:
            return self._same_file.is_moved()
        except CynosureError:
            return True

    def _keep_log_short(self, done: Sequence[_Outcome]) -> None:
        # After the answers are out: nobody waits for this.
        self._log_bytes += sum(_WRITE_BYTES + outcome.write.blob_bytes for outcome in done)
        if self._connection is None or self._log_bytes < LOG_BYTES:
            return
        self._log_bytes = 0
        try:
            move_log_into_file(self._connection)
        except sqlite3.Error:
            # The log still holds everything, and a disk that fails shows at the next COMMIT.
            self._abandon_transaction()

    def _begin(self, *, is_relaxed: bool) -> sqlite3.Connection:
        if self._connection is None:
            self._same_file.begin()
            self._connection = self._open_connection()
            self._is_flushing = True
        try:
            if self._is_flushing is is_relaxed:
                set_flushing(self._connection, is_on=not is_relaxed)
                self._is_flushing = not is_relaxed
            begin_write(self._connection, self._busy_timeout_s)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        try:
            self._same_file.check()
        except BaseException:
            self._abandon_transaction()
            raise
        return self._connection

    def _abandon_transaction(self) -> None:
        # Closing rolls back, and the next write begins on a connection that no error has touched.
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _take_waiting(self, most: int) -> list[_Write]:
        taken: list[_Write] = []
        while len(taken) < most:
            if self._next_turn:
                taken.append(self._next_turn.popleft())
                continue
            try:
                write = self._waiting.get_nowait()
            except queue.Empty:
                break
            if write is None:
                self._is_ending = True
                break
            taken.append(write)
        return taken


def _fail(group: Sequence[_Write], error: Exception) -> list[_Outcome]:
    return [_Outcome(write, None, error) for write in group]


def _deliver(outcomes: Sequence[_Outcome]) -> None:
    if not outcomes:
        return
    try:
        # One wake-up of the loop for the whole group.
        outcomes[0].write.outcome.get_loop().call_soon_threadsafe(_resolve, outcomes)
    except RuntimeError:
        # The loop is gone, and with it everyone who could hear the answer.
        return


def _resolve(outcomes: Sequence[_Outcome]) -> None:
    for write, value, error in outcomes:
        if write.outcome.done():
            continue
        if error is None:
            write.outcome.set_result(value)
        else:
            write.outcome.set_exception(error)
