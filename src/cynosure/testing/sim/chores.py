"""Coordinated tasks of the simulated servers: garbage collection, and a chore that tells on its runners.

The chore's only effect is an event in the history, right after `TaskRun.check` allowed it. Two runners at
once show as events that alternate; lost progress shows as a run that begins too early.
"""

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Protocol, cast

from msgspec.structs import replace

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, Damaged
from cynosure.idempotency.cleanup import cleanup_task
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.persistence.maintenance import gc_task
from cynosure.persistence.tasks import CoordinatedTasks, Retry, RunRecord, Task, TaskRun
from cynosure.testing.sim.history import History
from cynosure.testing.sim.weather import Weather

CHORE = "chore"
_STEPS = 6


class WatchedTasks(CoordinatedTasks):
    """Production's, and what it did is counted. Its callers catch everything, so bugs are noted here."""

    history: History
    server: str

    async def run_if_due(self, task: Task) -> RunRecord | None:
        """See `CoordinatedTasks`."""
        try:
            record = await super().run_if_due(task)
        except CynosureError as error:
            self.history.note(self.server, "task fails", task.name, type(error).__name__)
            raise
        except Exception as error:
            self.history.breach("no bug escapes", f"{self.server}'s {task.name}: {error!r}")
            raise
        if record is not None:
            self.history.note(self.server, "task", task.name, record.outcome)
            self.history.count(f"tasks {record.outcome}")
        return record


class ChoreBook:
    """What is known of the chore over all servers."""

    def __init__(self, history: History, weather: Weather) -> None:
        self._history = history
        self._is_judged = not weather.has_wild_clock
        self._runs = 0
        self._acting = 0
        """Number of the newest run that did something."""
        self._saved = 0
        """Acknowledged progress of the present piece of work."""

    def begin(self, server: str, run: TaskRun) -> int:
        """A run starts. Its progress is what was saved last, unless the work was finished since."""
        self._runs += 1
        done = int(run.progress or b"0")
        if run.attempt > 1 or run.row.history:
            self._history.count("task takeovers", int(done > 0))
        if self._is_judged and done < self._saved:
            self._history.breach(
                "saved progress is not lost", f"{server} begins at {done}, not {self._saved}"
            )
        return self._runs

    def act(self, server: str, number: int) -> None:
        """A run does something, which it may only do while no later run did."""
        self._history.note(server, "chore", number)
        self._history.count("chore steps")
        if number < self._acting and self._is_judged:
            self._history.breach("one runs a coordinated task", f"{server} goes on after run {self._acting}")
        self._acting = max(self._acting, number)

    def save(self, done: int) -> None:
        """Progress was acknowledged."""
        self._saved = done

    def end(self) -> None:
        """The work is done; whether that is recorded is not known here."""
        self._saved = 0


def chore_task(server: str, book: ChoreBook, clock: Clock, rng: Random) -> Task:
    """Six steps with pauses, saving its progress after each."""

    async def run(task_run: TaskRun) -> str:
        task_run.check()
        number = book.begin(server, task_run)
        for done in range(int(task_run.progress or b"0"), _STEPS):
            await clock.sleep(rng.expovariate(2.0))
            task_run.check()
            book.act(server, number)
            await task_run.save(b"%d" % (done + 1))
            book.save(done + 1)
        task_run.check()
        book.end()
        return "done"

    return Task(name=CHORE, every_s=6.0, run=run, retry=Retry(first_s=1.0, max_s=3.0))


class CollectingServer(Protocol):
    """What a collection needs to know of a simulated server, beside what production gives it."""

    name: str
    weather: Weather


def collection_task(server: CollectingServer, history: History) -> Task:
    """Production's garbage collection; damage it meets is a broken rule."""
    task = gc_task(cast("Any", server))

    async def run(task_run: TaskRun) -> str:
        history.count("collections started")
        try:
            text = await task.run(task_run)
        except Damaged as error:
            if not server.weather.has_wild_clock:
                history.breach("nothing in use is collected", f"{server.name}'s collection: {error}")
            raise
        history.count("collections")
        return text

    watched: Callable[[TaskRun], Awaitable[str]] = run
    return replace(task, run=watched, retry=Retry(first_s=1.0, max_s=5.0))


def expiry_task(server: object, settings: IdempotencySettings) -> Task:
    """Production's removal of expired idempotency records."""
    return replace(cleanup_task(cast("Any", server), settings), retry=Retry(first_s=1.0, max_s=5.0))
