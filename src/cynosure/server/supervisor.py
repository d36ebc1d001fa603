"""Child processes kept alive: started, watched, restarted with growing pauses, stopped together.

Used twice: by `cynosure up` for its services and by `cynosure serve --workers N` for its workers.

A maintainer must not break: no child outlives the supervisor (the line in `link.py` ends with it), and the
exit code tells the truth: 0 only when every child ended cleanly because it was asked to.
"""

import asyncio
import contextlib
import os
import random
import signal
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.server.link import FD_VARIABLE

_log = Log(__name__)


class ChildFailed(CynosureError):
    """A child process ended for good; the supervisor ended the others."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """How to start one child."""

    name: str
    argv: Sequence[str]
    order: Any = None
    """Sent down the line as JSON, for a child that reads its order."""
    pass_fds: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    on_exit: Callable[[], None] = lambda: None
    """Called after each end of the child, before it is started again."""
    is_last: bool = False
    """Asked to end when the others have ended: what they finish, they finish with it."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """When to try again and when to give up."""

    first_pause_s: float = 0.2
    max_pause_s: float = 10.0
    stable_after_s: float = 60.0
    """A child that ran this long has earned a fresh count of crashes."""
    max_crashes: int = 5
    """More than this many crashes in a row end the supervisor."""
    stop_grace_s: float = 40.0
    """A child that has not ended this long after being asked is killed."""


class Supervisor:
    """Runs children until a signal, or until one of them cannot be kept alive."""

    def __init__(
        self,
        children: Sequence[ChildSpec],
        *,
        clock: Clock,
        rng: random.Random,
        policy: RestartPolicy | None = None,
        on_ready: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        self._children = children
        self._clock = clock
        self._rng = rng
        self._policy = policy or RestartPolicy()
        self._on_ready = on_ready
        self._ready: dict[str, Any] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._kept: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.subprocess.Process] = {}
        """Those that were asked to end and have not yet, by process id."""
        self._stopping = asyncio.Event()
        self._fault: ChildFailed | None = None

    async def run(self) -> None:
        """Start the children. Returns when a signal ended all of them cleanly; otherwise `ChildFailed`."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._forward, signal.SIGHUP)
        try:
            self._kept = {child.name: asyncio.create_task(self._keep(child)) for child in self._children}
            await asyncio.gather(*self._kept.values())
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
        if self._fault is not None:
            raise self._fault

    async def _keep(self, child: ChildSpec) -> None:
        crashes = 0
        was_ready = False
        while not self._stopping.is_set():
            started_s = self._clock.monotonic_s()
            code, became_ready = await self._run_once(child)
            was_ready |= became_ready
            if self._stopping.is_set():
                # Killed by SIGTERM itself, still starting or hurried at its very end, or never begun: it had
                # nothing to finish.
                if code not in (0, -signal.SIGTERM, None):
                    self._fail(child, code, "A child process did not end cleanly when asked to")
                return
            if not was_ready:
                # What fails from the beginning is a wrong setting, not bad luck.
                self._fail(child, code, "A child process could not start")
                return
            is_stable = self._clock.monotonic_s() - started_s >= self._policy.stable_after_s
            crashes = 1 if is_stable else crashes + 1
            if crashes > self._policy.max_crashes:
                self._fail(child, code, "A child process keeps crashing")
                return
            pause_s = self._pause_s(crashes)
            _log.event(
                "child.crashed",
                level=ERROR,
                child=child.name,
                exit_code=code,
                crashes=crashes,
                restart_in_s=round(pause_s, 3),
            )
            await self._sleep_unless_stopping(pause_s)

    async def _run_once(self, child: ChildSpec) -> tuple[int | None, bool]:
        """How it ended, `None` when it did not begin; and whether it was ever ready."""
        try:
            process, ours = await _spawn(child)
        except OSError as error:
            # Too many processes or files, or too little memory: of the machine, and maybe only for now.
            reason = error.strerror or type(error).__name__
            _log.event("child.not_begun", level=ERROR, child=child.name, reason=reason)
            return None, child.name in self._ready
        with ours:
            self._processes[child.name] = process
            ours.setblocking(False)
            listening = asyncio.create_task(self._listen(child, ours))
            ending = asyncio.create_task(process.wait())
            stopping = asyncio.create_task(self._stopping.wait())
            try:
                await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if child.is_last:
                    await self._wait_for_others(ending)
                if not ending.done():
                    await self._stop(process, ending)
                return await ending, child.name in self._ready
            finally:
                for task in (listening, ending, stopping):
                    task.cancel()
                if process.returncode is None:
                    process.kill()
                self._processes.pop(child.name, None)
                child.on_exit()

    async def _listen(self, child: ChildSpec, line: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            if child.order is not None:
                await loop.sock_sendall(line, msgspec.json.encode(child.order) + b"\n")
            received = b""
            while not received.endswith(b"\n"):
                chunk = await loop.sock_recv(line, 65536)
                if not chunk:
                    return
                received += chunk
            is_first = child.name not in self._ready
            self._ready[child.name] = msgspec.json.decode(received)
            if is_first and len(self._ready) == len(self._children):
                self._on_ready(self._ready)

    async def _wait_for_others(self, ending: asyncio.Task[int]) -> None:
        """Until all that end before the last ones have ended, or the child itself has."""
        for other in self._children:
            if not other.is_last:
                await asyncio.wait({self._kept[other.name], ending}, return_when=asyncio.FIRST_COMPLETED)

    async def _stop(self, process: asyncio.subprocess.Process, ending: asyncio.Task[int]) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        self._asked[process.pid] = process
        done, _ = await asyncio.wait({ending}, timeout=self._policy.stop_grace_s)
        del self._asked[process.pid]
        if not done:
            _log.event("child.killed", level=ERROR, pid=process.pid, stop_grace_s=self._policy.stop_grace_s)
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def _end(self) -> None:
        """The first signal asks the children to end; one that follows hurries those that were asked."""
        if self._stopping.is_set():
            _send(signal.SIGTERM, self._asked.values())
        self._stopping.set()

    def _forward(self, number: signal.Signals) -> None:
        _send(number, self._processes.values())

    def _fail(self, child: ChildSpec, code: int | None, message: str) -> None:
        if self._fault is None:
            self._fault = ChildFailed(
                message,
                fix="Its own message is above; correct the cause and start again.",
                child=child.name,
                ended=_describe(code),
            )
        self._stopping.set()

    def _pause_s(self, crashes: int) -> float:
        bound_s = min(self._policy.max_pause_s, self._policy.first_pause_s * 2.0 ** (crashes - 1))
        return bound_s * self._rng.uniform(0.5, 1.0)

    async def _sleep_unless_stopping(self, seconds: float) -> None:
        sleeping = asyncio.create_task(self._clock.sleep(seconds))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({sleeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopping.cancel()


async def _spawn(child: ChildSpec) -> tuple[asyncio.subprocess.Process, socket.socket]:
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as failing, theirs:
        failing.enter_context(ours)
        process = await asyncio.create_subprocess_exec(
            *child.argv,
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), *child.pass_fds),
            env={**os.environ, **child.environment, FD_VARIABLE: str(theirs.fileno())},
            # Out of our group: ctrl-C at the terminal reaches us alone, and we stop the children.
            process_group=0,
        )
        failing.pop_all()
    return process, ours


def _send(number: signal.Signals, processes: Iterable[asyncio.subprocess.Process]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)


def _describe(code: int | None) -> str:
    if code is None:
        return "before it began"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
