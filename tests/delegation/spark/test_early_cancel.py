"""A run whose end is asked for while its session is still made: a job's first question may be hours away."""

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cynosure.common.errors import CynosureError, Unavailable
from cynosure.spark import wire
from cynosure.spark.driver import Driver
from cynosure.spark.kinds import JobLink

WAIT_S = 20.0


class Context:
    """Of Spark, as far as runs are named and cancelled by it."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Session:
    sparkContext = Context()


class SlowKind:
    """Sessions take their time."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.may_give = threading.Event()
        self.error: Exception | None = None

    def link(self, spark: Any, start: Any, run: wire.Run, ask: Any) -> JobLink:
        self.is_asked.set()
        self.may_give.wait(WAIT_S)
        if self.error is not None:
            raise self.error
        return JobLink(spark, run.task_id, ask)

    def to_error(self, raised: BaseException) -> CynosureError:
        return Unavailable("No session", reason=type(raised).__name__)


def until_cancelled(link: JobLink, parameters: Any) -> dict[str, bool]:
    return {"is_cancelled": link._cancelled.wait(WAIT_S)}


@contextmanager
def serving(kind: SlowKind) -> Iterator[tuple[socket.socket, Driver]]:
    """The parent's end of the line of a driver, and it."""
    ours, theirs = socket.socketpair()
    driver = Driver(theirs)
    jobs = {"wait": f"{__name__}:until_cancelled"}
    driver._spark, driver._kind = Session(), kind  # type: ignore[assignment]  # as far as they are used
    driver._start = wire.Start("local[1]", None, 2**30, None, {}, jobs, "", "", ())
    thread = threading.Thread(target=driver.serve, daemon=True)
    thread.start()
    try:
        yield ours, driver
    finally:
        ours.close()
        thread.join(WAIT_S)
        theirs.close()


def ask_for_its_end(line: socket.socket, driver: Driver, kind: SlowKind) -> wire.Up:
    """Before there is a session; what the run ends with."""
    line.settimeout(WAIT_S + 10)
    line.sendall(wire.encode(wire.Run(1, "wait", "task", "", {})))
    assert kind.is_asked.wait(WAIT_S)
    line.sendall(wire.encode(wire.Cancel(1)))
    # What comes behind it on the line says that it was read.
    heard = driver._waiting[7] = queue.SimpleQueue()
    line.sendall(wire.encode(wire.Answer(7)))
    heard.get(timeout=WAIT_S)
    kind.may_give.set()
    with line.makefile("rb") as lines:
        return wire.decode_up(lines.readline())


def test_it_is_told_as_soon_as_it_begins():
    kind = SlowKind()
    with serving(kind) as (line, driver):
        assert ask_for_its_end(line, driver, kind) == wire.Ended(1, {"is_cancelled": True})


def test_one_that_cannot_begin_says_so():
    kind = SlowKind()
    kind.error = RuntimeError("no")
    with serving(kind) as (line, driver):
        answer = ask_for_its_end(line, driver, kind)
        assert isinstance(answer, wire.Ended)
        assert answer.error is not None
