"""An event loop without a world outside: time is a number, and one seed decides who runs next.

Nothing is waited for. While something is ready, a randomly drawn process runs one step; when nothing is,
time jumps to the next timer. A *process* is what runs together, stops together and dies together; tasks
and callbacks belong to the one their context names.

Must not break: everything that happens follows from the seed, so nothing here may ask the operating
system, iterate over a set of objects, or depend on when Python collects garbage.
"""

import asyncio
import contextlib
import gc
import heapq
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CLOSE_ATTEMPTS = 100


class Stuck(Exception):
    """The run cannot end: nothing is ready and no timer is set, or it takes far too many steps."""


class Process:
    """Runs, stops and dies as one. Make it with `SimLoop.new_process`."""

    def __init__(self, loop: "SimLoop", name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.ready: deque[asyncio.Handle] = deque()
        self._loop = loop
        self._context = copy_context()
        self._context.run(_CURRENT.set, self)
        self._tasks: list[asyncio.Task[Any]] = []
        self._purge_at = 64

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task of this process."""
        return self._loop.create_task(work, context=self._context.copy())

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        """Call back in this process."""
        return self._loop.call_later(delay_s, callback, *args, context=self._context)

    def pause(self) -> None:
        """As SIGSTOP: what becomes ready waits. Messages on their way arrive."""
        self.is_paused = True
        self._loop.forget_runnable(self)

    def resume(self) -> None:
        """As SIGCONT."""
        self.is_paused = False
        if self.ready and not self.is_dead:
            self._loop.note_runnable(self)

    def kill(self) -> None:
        """As kill -9: nothing of this process runs again, not even its cleanup."""
        self.is_dead = True
        self.ready.clear()
        self._loop.forget_runnable(self)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Remember a task. Kept by a strong reference: a dead process' task must not be finalized early."""
        if len(self._tasks) >= self._purge_at:
            self.forget_done()
            self._purge_at = 2 * len(self._tasks) + 64
        self._tasks.append(task)

    def forget_done(self) -> None:
        """Let go of tasks that have ended, so that they can tell of exceptions nobody asked for."""
        self._tasks = self.pending_tasks()

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that have not ended, oldest first."""
        return [task for task in self._tasks if not task.done()]


_CURRENT: ContextVar[Process] = ContextVar("sim_process")


class SimFuture(asyncio.Future[Any]):
    """A future that knows whose it is, to tell a bug from a victim of a crash."""

    process: Process


class SimTask(asyncio.Task[Any]):
    """A task that knows whose it is."""

    process: Process


class SimLoop(asyncio.BaseEventLoop):
    """Runs one simulation. `outside` is the process of whatever belongs to none."""

    def __init__(self, rng: Random, *, is_shuffled: bool, most_steps: int) -> None:
        super().__init__()
        self.steps = 0
        self.problems: list[str] = []
        """What asyncio would have logged: exceptions nobody retrieved, errors in callbacks."""
        self._rng = rng
        self._is_shuffled = is_shuffled
        """Whether also the callbacks of one process run in random order. A real loop keeps their order, but
        what depends on it is rarely meant to."""
        self._most_steps = most_steps
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process]] = []
        self._timer_number = 0
        self._runnable: list[Process] = []
        self._processes: list[Process] = []
        self.is_over = False
        """Whether the run has ended; whatever still happens is no part of it."""
        self.outside = self.new_process("outside")

    def new_process(self, name: str) -> Process:
        """A process, alive and running."""
        process = Process(self, name)
        self._processes.append(process)
        return process

    @property
    def process(self) -> Process:
        """The process that is running now."""
        return _CURRENT.get(self.outside)

    # --- what asyncio asks of a loop ------------------------------------------------------------

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self._now_s

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """See asyncio."""
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        self._make_ready(context.get(_CURRENT, self.outside), handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """See asyncio."""
        context = copy_context() if context is None else context
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_number += 1
        process = context.get(_CURRENT, self.outside)
        heapq.heappush(self._timers, (when, self._timer_number, timer, process))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        future = SimFuture(loop=self)
        future.process = self.process
        return future

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """See asyncio. Names are dropped: asyncio counts them over all loops of a Python process."""
        context = copy_context() if context is None else context
        if self.is_over:
            coro.close()  # It will never run, and need not complain about that.
        task: Any = SimTask(coro, loop=self, name="sim", context=context)
        task.process = context.get(_CURRENT, self.outside)
        task.process.adopt(task)
        return task  # type: ignore[no-any-return]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what asyncio complains about, unless a crash explains it."""
        culprit = context.get("task") or context.get("future")
        owner = getattr(culprit, "process", None)
        is_victim = owner.is_dead if owner is not None else any(each.is_dead for each in self._processes)
        if not (self.is_over or (culprit is not None and is_victim)):
            name = owner.name if owner is not None else "?"
            self.problems.append(f"{name}: {context.get('message')}: {context.get('exception')!r}")

    # --- running --------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end of `work`, then end everything else without a trace."""
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._finish_generator)
        asyncio._set_running_loop(self)
        try:
            main = self.outside.spawn(work)
            while not main.done():
                self._step()
            for process in self._processes:
                process.forget_done()
            gc.collect()  # Futures in cycles tell only now.
            return main.result()
        finally:
            self._bury()
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)
            self.close()

    def _step(self) -> None:
        while not self._runnable:
            self._jump()
        self.steps += 1
        if self.steps > self._most_steps:
            raise Stuck(f"The run does not end within {self._most_steps} steps")
        runnable = self._runnable
        process = runnable[int(self._rng.random() * len(runnable))] if len(runnable) > 1 else runnable[0]
        if self._is_shuffled and len(process.ready) > 1:
            process.ready.rotate(-int(self._rng.random() * len(process.ready)))
        handle = process.ready.popleft()
        if not process.ready:
            runnable.remove(process)
        if not handle.cancelled():
            handle._run()

    def _jump(self) -> None:
        """To the next timer, and to all others of that instant."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._timers:
            raise Stuck("Nothing is ready and no timer is set: a deadlock")
        self._now_s = max(self._now_s, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now_s:
            _, _, timer, process = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._make_ready(process, timer)

    def _make_ready(self, process: Process, handle: asyncio.Handle) -> None:
        if process.is_dead or self.is_over:
            return
        if not process.ready and not process.is_paused:
            self._runnable.append(process)
        process.ready.append(handle)

    def note_runnable(self, process: Process) -> None:
        """A process may run again."""
        if process not in self._runnable:
            self._runnable.append(process)

    def forget_runnable(self, process: Process) -> None:
        """A process must not run for now."""
        if process in self._runnable:
            self._runnable.remove(process)

    def _finish_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self.is_over and not self.process.is_dead:
            self.create_task(generator.aclose())

    def _bury(self) -> None:
        """End what never ended, in silence: whatever it does now is not part of the simulation."""
        self.is_over = True
        self._timers.clear()
        for process in self._processes:
            process.ready.clear()
            for task in process.pending_tasks():
                setattr(task, "_log_destroy_pending", False)  # noqa: B010 - not in the type stubs
                coroutine = task.get_coro()
                for _ in range(_CLOSE_ATTEMPTS):
                    # An error means that its cleanup awaits something: go on until it has no more of it.
                    with contextlib.suppress(Exception, asyncio.CancelledError, GeneratorExit):
                        coroutine.close()
                        break
