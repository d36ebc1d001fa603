"""The driver: a process of its own with one Spark session, which runs several jobs at once.

    python -m cynosure.spark.driver        started by `driver_process.py`, never by hand

A maintainer must not break: it ends when its line ends, at whatever point it is, and takes Java and Java's
workers along; a Java that died ends it, so that the next job gets a new one.
"""

import itertools
import os
import queue
import shutil
import signal
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cynosure.common.errors import CynosureError, Misconfigured, Unavailable
from cynosure.spark import wire
from cynosure.spark.kinds import DriverKind, JobLink, load, load_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STOP_S: Final = 5.0
_CANCEL_AGAIN_S: Final = 1.0


class Driver:
    """The child's end of the line, and all that runs."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, queue.SimpleQueue[wire.Answer]] = {}
        self._runs: dict[int, _Running] = {}
        self._start: wire.Start | None = None
        self._kind: DriverKind | None = None
        self._spark: SparkSession | None = None

    def serve(self) -> None:
        """Do what comes down the line, until it ends."""
        # A thread for everything that takes long: the end of the line is noticed at once.
        with self._line.makefile("rb") as lines:
            for line in lines:
                match wire.decode_down(line):
                    case wire.Start() as start:
                        self._start = start
                        self._spawn(self._open, start)
                    case wire.Run() as run:
                        # Here: its end may be asked for before its thread has begun.
                        running = self._runs[run.run] = _Running()
                        self._spawn(self._run, run, running)
                    case wire.Cancel(run=number):
                        if unwanted := self._runs.get(number):
                            self._spawn(unwanted.cancel)
                    case wire.Answer() as answer:
                        if waiting := self._waiting.pop(answer.ask, None):
                            waiting.put(answer)
                    case wire.Stop():
                        self.end(is_polite=True)

    def end(self, *, is_polite: bool = False, code: int = 0) -> None:
        """End this process and all that it started."""
        if is_polite and self._spark is not None and self._start is not None and not self._is_local():
            # A cluster keeps what an application holds until it is told, or finds out.
            stopping = threading.Thread(target=self._spark.stop, daemon=True)
            stopping.start()
            stopping.join(_STOP_S)
        if self._start is not None:
            shutil.rmtree(self._start.scratch, ignore_errors=True)
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(code)

    def _is_local(self) -> bool:
        return self._start is not None and self._start.remote is None and self._start.master[:5] == "local"

    def _spawn(self, function: Any, *arguments: Any) -> None:
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def _send(self, message: wire.Up) -> None:
        # A parent that is gone is noticed where the line is read.
        with self._sending, suppress(OSError):
            self._line.sendall(wire.encode(message))

    def _open(self, start: wire.Start) -> None:
        try:
            self._kind = load(start.kind)
            self._spark = self._kind.open(start)
        except Exception as error:
            self._send(wire.Ready(self._tell(error)))
            return
        if start.remote is None:
            self._spawn(self._end_with_java)
        self._send(wire.Ready())

    def _tell(self, raised: BaseException) -> wire.Told:
        if isinstance(raised, CynosureError):
            return wire.tell(raised)
        if self._kind is None:
            return wire.tell(Unavailable("The Spark driver cannot begin", reason=type(raised).__name__))
        return wire.tell(self._kind.to_error(raised))

    def _end_with_java(self) -> None:
        from pyspark import SparkContext  # noqa: PLC0415 - an extra

        java = getattr(SparkContext._gateway, "proc", None)
        if java is not None:
            java.wait()
            self.end(code=1)

    def _run(self, run: wire.Run, running: "_Running") -> None:
        assert self._spark is not None  # noqa: S101 - the parent waits for `Ready`
        assert self._kind is not None  # noqa: S101 - it came before
        assert self._start is not None  # noqa: S101 - as did this
        try:
            link = self._kind.link(
                self._spark, self._start, run, lambda what, value: self._ask(run.run, what, value)
            )
            running.begin(link, run.description)
            ended = wire.Ended(run.run, load_job(run.job, self._start.jobs)(link, run.parameters))
        except Exception as error:
            ended = wire.Ended(run.run, error=self._tell(error))
        finally:
            running.end()
            self._runs.pop(run.run, None)
        self._send(ended)

    def _ask(self, run: int, what: str, value: Any) -> Any:
        number = next(self._numbers)
        waiting: queue.SimpleQueue[wire.Answer] = queue.SimpleQueue()
        self._waiting[number] = waiting
        self._send(wire.Ask(run, number, what, value))
        answer = waiting.get()
        if answer.error is not None:
            raise wire.hear(answer.error)
        return answer.value


class _Running:
    """A job that runs, or is about to."""

    def __init__(self) -> None:
        self._link: JobLink | None = None
        self._is_begun = threading.Event()
        """It has a link; or it is over without ever having had one."""
        self._is_over = threading.Event()

    def begin(self, link: JobLink, description: str) -> None:
        """Name the Spark jobs that this thread starts."""
        self._link = link
        self._is_begun.set()
        if not link.is_classic:
            link.spark.addTag(link.task_id)
            return
        context = link.spark.sparkContext
        context.setJobGroup(link.task_id, description, interruptOnCancel=True)
        # Iceberg gives its own jobs groups of their own; a tag stays with them.
        context.addJobTag(link.task_id)

    def end(self) -> None:
        """It is over."""
        self._is_over.set()
        self._is_begun.set()
        # What it returned or raised counts; that it left something behind costs memory only.
        with suppress(Exception):
            if self._link is not None:
                self._link.close()

    def cancel(self) -> None:
        """End its Spark jobs, and those that it starts before it notices."""
        self._is_begun.wait()
        link = self._link
        if link is None:
            return
        link.cancel()
        while not self._is_over.is_set():
            with suppress(Exception):
                if link.is_classic:
                    link.spark.sparkContext.cancelJobGroup(link.task_id)
                    link.spark.sparkContext.cancelJobsWithTag(link.task_id)
                else:
                    link.spark.interruptTag(link.task_id)
            self._is_over.wait(_CANCEL_AGAIN_S)


def main() -> None:
    """Serve the process that started this one."""
    number = os.environ.pop(wire.FD_VARIABLE, "")
    if not number.isdigit():
        raise Misconfigured(
            "This process has nobody to work for",
            fix="Start `cynosure serve delegation` or `cynosure serve gateway`, which start it.",
        )
    line = socket.socket(fileno=int(number))
    line.set_inheritable(False)
    driver = Driver(line)
    # Told to end by anybody, it takes Java along.
    signal.signal(signal.SIGTERM, lambda *_: driver.end())
    try:
        with suppress(OSError):
            driver.serve()
    finally:
        driver.end()


if __name__ == "__main__":
    main()
