"""The parent's end of a Spark driver: its process, the jobs it runs, the questions they ask.

A maintainer must not break: when the process is gone, every job that ran there fails with `Unavailable`, and
nothing of it stays behind: no Java, no scratch files.
"""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cynosure.common.delegated.settings import SparkSettings
from cynosure.common.errors import CynosureError, LeaseLost, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.spark import wire
from cynosure.spark.environment import make_environment

Questions = Callable[[str, Any], Awaitable[Any]]
"""Answers what a job asks: what, and with what value."""

_log = Log(__name__)
_KILL_S: Final = 10.0
_ENDING_S: Final = 0.5
"""For a driver that has closed its end of the line to end by itself."""


class DriverProcess:
    """One driver, from its start to its end."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        kind: str,
        jobs: Mapping[str, str],
        java_options: Callable[[Path], tuple[str, ...]],
    ) -> None:
        """A driver of a kind (`kinds.DriverKind`), by its place.

        `jobs` may run there; `java_options` makes options for Java with files in the scratch folder.
        """
        self._settings = settings
        self._kind = kind
        self._jobs = dict(jobs)
        self._java_options = java_options
        self._numbers = itertools.count()
        self._ended: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._leaving: set[int] = set()
        self._questions: dict[int, Questions] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._is_gone = False
        self._scratch: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_gone(self) -> bool:
        """Whether nothing can run there any more."""
        return self._is_gone

    @property
    def leaving(self) -> frozenset[int]:
        """Numbers of jobs that were cancelled, and go on."""
        return frozenset(self._leaving)

    @property
    def scratch(self) -> Path:
        """A folder that only this user reads; it ends with the driver."""
        assert self._scratch is not None  # noqa: S101 - it is there from the start on
        return self._scratch

    @property
    def pid(self) -> int | None:
        """Of the process."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process and wait for its session."""
        self._scratch = Path(tempfile.mkdtemp(prefix="cynosure-spark-"))
        settings = self._settings
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "cynosure.spark.driver",
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={
                        **make_environment(os.environ, settings),
                        wire.FD_VARIABLE: str(theirs.fileno()),
                    },
                    # A group of its own: it ends together with Java, and a ctrl-C is for us alone.
                    start_new_session=True,
                )
            reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=wire.MAX_LINE_BYTES)
        except BaseException:
            ours.close()
            await self.close()
            raise
        self._listening = asyncio.create_task(self._listen(reader))
        try:
            self._send(
                wire.Start(
                    settings.master,
                    settings.remote,
                    settings.driver_memory,
                    str(settings.jars) if settings.jars else None,
                    settings.config,
                    self._jobs,
                    str(self._scratch),
                    self._kind,
                    # Of files that somebody may be replacing right now.
                    self._java_options(self._scratch),
                )
            )
            await asyncio.shield(self._ready)
        except BaseException:
            await self.close()
            raise

    async def run(
        self, job: str, parameters: dict[str, Any], *, task_id: str, description: str, questions: Questions
    ) -> dict[str, Any]:
        """Run a job; what it returns. Cancelled, it is cancelled there too."""
        if self._is_gone:
            raise _gone()
        number = next(self._numbers)
        ended: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._ended[number] = ended
        self._questions[number] = questions
        try:
            self._send(wire.Run(number, job, task_id, description, parameters))
            return await ended
        finally:
            if not ended.done() or ended.cancelled():
                self._leaving.add(number)
                self._send(wire.Cancel(number))
            self._ended.pop(number, None)
            self._questions.pop(number, None)

    async def close(self) -> None:
        """End it, with all that it started."""
        self._give_up()
        process = self._process
        if process is not None:
            self._send(wire.Stop())
            if self._writer is not None:
                self._writer.close()
            try:
                await asyncio.wait_for(process.wait(), _KILL_S)
            except TimeoutError:
                self._kill(process.pid)
                await process.wait()
        for task in (self._listening, *self._answering):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if self._scratch is not None:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    def _send(self, message: wire.Down) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(wire.encode(message))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := await reader.readline():
                self._take(wire.decode_up(line))
        is_expected = self._is_gone
        self._give_up()
        # The session may have been started by a shell that is still on its way to Java.
        if self._process is not None:
            # If it ended by itself, then by what; killed by us it would be a killing.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _ENDING_S)
            code = self._process.returncode
            self._kill(self._process.pid)
            await self._process.wait()
            if not is_expected:
                _log.event("spark.driver_ended", level=WARNING, kind=self._kind, code=code)
        if self._scratch is not None:
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    def _take(self, message: wire.Up) -> None:
        match message:
            case wire.Ready(error=error):
                if not self._ready.done():
                    if error is None:
                        self._ready.set_result(None)
                    else:
                        self._ready.set_exception(wire.hear(error))
            case wire.Ask():
                task = asyncio.create_task(self._answer(message))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
            case wire.Ended(run=run, value=value, error=error):
                self._leaving.discard(run)
                ended = self._ended.get(run)
                if ended is not None and not ended.done():
                    if error is None:
                        ended.set_result(value or {})
                    else:
                        ended.set_exception(wire.hear(error))

    async def _answer(self, ask: wire.Ask) -> None:
        questions = self._questions.get(ask.run)
        try:
            if questions is None:
                raise LeaseLost("Nobody waits for this any more")  # noqa: TRY301 - answered like any other
            answer = wire.Answer(ask.ask, await questions(ask.what, ask.value))
        except CynosureError as error:
            answer = wire.Answer(ask.ask, error=wire.tell(error))
        except Exception as error:
            answer = wire.Answer(
                ask.ask,
                error=wire.tell(Unavailable("The driver's parent failed", reason=type(error).__name__)),
            )
        self._send(answer)

    def _give_up(self) -> None:
        self._is_gone = True
        futures: list[asyncio.Future[Any]] = [self._ready, *self._ended.values()]
        for future in futures:
            if not future.done():
                future.set_exception(_gone())
                # Nobody may be waiting for it.
                future.exception()

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _gone() -> Unavailable:
    return Unavailable("The Spark driver ended while it worked", fix="The task is tried again.")
