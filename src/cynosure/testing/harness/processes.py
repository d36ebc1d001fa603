"""Real processes that a test starts, kills, freezes and restarts.

A maintainer must not break: nothing outlives its `Processes`. Everything started here, and everything
those processes started, is gone after `close`, and also when the test run itself is killed.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from cynosure.common.errors import CynosureError
from cynosure.testing.harness.ports import ReservedPort

Probe = Callable[["ManagedProcess"], Awaitable[bool]]
"""Asks once whether a process is ready. May be called again and again."""

_OWNER_VARIABLE = "CYNOSURE_HARNESS_OWNER"
_POLL_S = 0.02


class ProcessFailed(CynosureError):
    """A process died or did not get ready in time. The text ends with the end of its log."""

    def __init__(self, message: str, process: "ManagedProcess") -> None:
        super().__init__(
            message, process=process.name, exit_code=process.exit_code, log=str(process.log_path)
        )
        self.log_tail = process.log_tail()

    def __str__(self) -> str:
        return f"{super().__str__()}\n--- end of its log ---\n{self.log_tail}"


class ManagedProcess:
    """One command line that can be started many times. Made by `Processes.start`."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None,
        log_path: Path,
        ready: Probe | None,
        timeout_s: float,
        guard: Callable[[int], None],
    ) -> None:
        self.name = name
        self.argv = tuple(argv)
        self.log_path = log_path
        self._env = dict(env)
        self._cwd = cwd
        self._ready = ready
        self._timeout_s = timeout_s
        self._guard = guard
        self._popen: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """Process id of the current or last incarnation."""
        assert self._popen is not None, "never started"
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """`None` while it runs; negative is the signal that ended it."""
        return self._popen.poll() if self._popen else None

    @property
    def is_running(self) -> bool:
        """It was started and has not ended. A frozen process runs."""
        return self._popen is not None and self._popen.poll() is None

    def log(self) -> str:
        """What the current incarnation wrote to its standard output and error."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def log_tail(self, lines: int = 40) -> str:
        """The end of the log, all incarnations together."""
        if not self.log_path.exists():
            return "(nothing)"
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def describe(self) -> tuple[str, str]:
        """What to show beside a failure: a title, and the end of the log. Also of one that never started."""
        when = "never started" if self._popen is None else f"pid {self._popen.pid}"
        return f"log of {self.name}, {when}", self.log_tail()

    async def start(self) -> None:
        """Start it and wait until the probe says that it is ready."""
        assert not self.is_running, f"{self.name} is running"
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            self._popen = subprocess.Popen(  # noqa: ASYNC220 - not tied to this event loop, which may end first
                self.argv,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # its own group: signals reach its children, and Ctrl-C only the test
            )
        self._guard(self._popen.pid)
        if self._ready is not None:
            await self.wait_until(self._ready)

    async def wait_until(self, probe: Probe, *, timeout_s: float | None = None) -> None:
        """Ask the probe until it says yes. Fails when the process dies or time runs out."""
        give_up_s = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        while not await probe(self):
            if not self.is_running:
                raise ProcessFailed("The process ended before it was ready", self)
            if time.monotonic() > give_up_s:
                raise ProcessFailed("The process did not get ready in time", self)
            await asyncio.sleep(_POLL_S)

    async def wait_exit(self, *, timeout_s: float = 60.0) -> int:
        """Wait until it ends by itself; the exit code."""
        give_up_s = time.monotonic() + timeout_s
        while (code := self.exit_code) is None:
            if time.monotonic() > give_up_s:
                raise ProcessFailed("The process did not end in time", self)
            await asyncio.sleep(_POLL_S)
        return code

    async def stop(self, *, timeout_s: float = 60.0) -> int:
        """Ask it to end (SIGTERM, to it alone: handing on is its own task) and wait; the exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return await self.wait_exit(timeout_s=timeout_s)

    def kill9(self, *, only_parent: bool = False) -> None:
        """Kill it and its children at once, as a power cut would; or only itself, leaving orphans.

        Returns when the killed are dead: their sockets are closed and their file locks are free.
        """
        if not self.is_running:
            raise ProcessFailed("The process ended before the test killed it", self)
        doomed = [psutil.Process(self.pid)] if only_parent else self._tree()
        if only_parent:
            os.kill(self.pid, signal.SIGKILL)
        else:
            self._signal_tree(doomed, signal.SIGKILL)
        _wait_dead(doomed)
        assert self._popen is not None
        self._popen.wait()

    def sigstop(self) -> None:
        """Freeze it and its children. Returns when none of them runs any more."""
        tree = self._tree()
        self._signal_tree(tree, signal.SIGSTOP)
        _wait_for(lambda: all(_status(member) in _FROZEN for member in tree))

    def sigcont(self) -> None:
        """Let it and its children go on."""
        self._signal_tree(self._tree(), signal.SIGCONT)

    async def restart(self) -> None:
        """Start the same command line again, killing the current incarnation first if it runs."""
        if self.is_running:
            self.kill9()
        await self.start()

    def _tree(self) -> list[psutil.Process]:
        if not self.is_running:
            raise ProcessFailed("The process has ended", self)
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]

    def _signal_tree(self, tree: Sequence[psutil.Process], number: int) -> None:
        # The group first: it also has children born since the tree was read. The rest left the group.
        os.killpg(self.pid, number)
        for member in tree:
            _signal(member, number)


class Processes:
    """The processes and ports of one test. Use as a context manager."""

    def __init__(self, directory: Path) -> None:
        self.all: list[ManagedProcess] = []
        self._directory = directory
        self._owner = uuid.uuid4().hex
        self._ports: list[ReservedPort] = []
        self._guardian: subprocess.Popen[bytes] | None = None

    def reserve_port(self) -> int:
        """A free loopback port that stays free for this test's processes, also between restarts."""
        self._ports.append(ReservedPort())
        return self._ports[-1].number

    async def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        ready: Probe | None = None,
        timeout_s: float = 60.0,
    ) -> ManagedProcess:
        """Start a command and wait until it is ready, at most `timeout_s`.

        `env` is added to this process' environment. The log is `NAME.log` in the directory.
        """
        owner = {_OWNER_VARIABLE: self._owner, "PYTHONUNBUFFERED": "1"}
        process = ManagedProcess(
            name,
            argv,
            env={**os.environ, **owner, **(env or {})},
            cwd=cwd,
            log_path=self._directory / f"{name}.log",
            ready=ready,
            timeout_s=timeout_s,
            guard=self._guard,
        )
        self.all.append(process)
        await process.start()
        return process

    def close(self) -> None:
        """Kill and reap everything, then give the ports back."""
        for process in self.all:
            if process.is_running:
                process.kill9()
        # Whoever left the process tree (a daemon, an orphan of a killed parent) still carries our mark.
        strays = [stray for stray in psutil.process_iter() if self._is_ours(stray)]
        for stray in strays:
            _signal(stray, signal.SIGKILL)
        _wait_dead(strays)
        if self._guardian is not None:
            self._guardian.kill()
            self._guardian.communicate()
        for port in self._ports:
            port.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get(_OWNER_VARIABLE) == self._owner
        except psutil.Error:
            return False

    def _guard(self, pid: int) -> None:
        """Have this process group killed when the test run dies without cleaning up."""
        if self._guardian is None:
            self._guardian = subprocess.Popen(
                [sys.executable, "-S", "-c", _GUARDIAN], stdin=subprocess.PIPE, start_new_session=True
            )
        assert self._guardian.stdin is not None
        self._guardian.stdin.write(b"%d\n" % pid)
        self._guardian.stdin.flush()


# Its standard input ends when the test run does, however that happened.
_GUARDIAN = """
import os, sys
groups = [int(line) for line in sys.stdin]
for group in groups:
    try:
        os.killpg(group, 9)
    except OSError:
        pass
"""


# --- the operating system ------------------------------------------------------------------------

_FROZEN = {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except psutil.NoSuchProcess:
        return psutil.STATUS_DEAD


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _wait_dead(processes: Sequence[psutil.Process]) -> None:
    # A zombie is dead: it holds no file, lock or socket. Its parent may take its time to reap it.
    dead = {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    _wait_for(lambda: all(_status(process) in dead for process in processes))


def _wait_for(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    give_up_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_s, "the operating system did not carry out a signal"
        time.sleep(0.002)
