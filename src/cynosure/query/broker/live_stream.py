"""One stream: an attempt at a fragment that is being scanned.

A maintainer must not break: `moved_s` moves with the scan, and not with the thread that beats.
"""

import asyncio
import ssl
from contextlib import suppress

from cynosure.query.broker.runtime import Outcome, TaskRow
from cynosure.query.stream.frames import Beat, Done, Down, Hello, Left, Probe, Stop
from cynosure.query.stream.framing import encode_frame


class LiveStream:
    """The broker's end. `outcome` is set once, by whoever ends it first."""

    def __init__(
        self, hello: Hello, writer: asyncio.StreamWriter, relation: str, now_s: float, now_us: int
    ) -> None:
        self.hello = hello
        self.relation = relation
        self.started_s = self.beat_s = self.moved_s = now_s
        self.outcome = Outcome.RUNNING
        self._started_us = now_us
        self._writer = writer
        self._last: Beat | Done | Left = Beat()
        self._idle_ms = 0
        self._probes = 0
        self._answered = 0
        self._probed_s = now_s

    @property
    def is_running(self) -> bool:
        """Whether nobody ended it yet."""
        return self.outcome is Outcome.RUNNING

    def settle(self, outcome: Outcome) -> None:
        """End it this way, unless it ended before."""
        if self.is_running:
            self.outcome = outcome

    @property
    def rows(self) -> int:
        """Given so far, as far as it was told."""
        return self._last.rows

    @property
    def bytes_read(self) -> int:
        """Read so far."""
        return self._last.bytes

    def hear(self, beat: Beat, now_s: float) -> None:
        """It is alive. Does it move?"""
        self.beat_s = now_s
        has_progress = (beat.files, beat.rows, beat.bytes) != (
            self._last.files,
            self._last.rows,
            self._last.bytes,
        )
        if has_progress or beat.idle_ms == 0 or beat.probe > self._answered:
            self.moved_s = now_s
        self._answered = max(self._answered, beat.probe)
        self._idle_ms = beat.idle_ms
        self._last = beat

    def complete(self, message: Done | Left) -> None:
        """Its last word."""
        self._last = message

    def probe_if_idle(self, now_s: float, every_s: float) -> None:
        """Ask the scan itself, not the thread that beats, whether anything goes on."""
        if self._idle_ms and now_s - self._probed_s >= every_s:
            self._probes += 1
            self._probed_s = now_s
            self.send(Probe(self._probes))

    def forgive(self, seconds: float) -> None:
        """The broker itself stood still for so long: what was sent meanwhile is not read yet."""
        self.beat_s += seconds
        self.moved_s += seconds

    def send(self, message: Down) -> None:
        """Without waiting: what is sent this way is short, and who does not read is ended soon."""
        if not self._writer.is_closing():
            self._writer.write(encode_frame(message))

    async def send_task(self, frame: bytes) -> None:
        """A task may be long. Ends when the stream is ended."""
        self._writer.write(frame)
        await self._writer.drain()

    def stop(self, reason: str) -> None:
        """Say so, and hang up."""
        with suppress(OSError, ssl.SSLError):
            self.send(Stop(reason))
            self._writer.close()

    def abort(self) -> None:
        """Hang up: nobody listens there."""
        self._writer.transport.abort()

    def row(self, now_s: float) -> TaskRow:
        """For `system.runtime.tasks`."""
        return TaskRow(
            query_id=self.hello.query_id,
            fragment_id=self.hello.fragment_id,
            relation=self.relation,
            worker=self.hello.worker,
            process=self.hello.process,
            attempt=self.hello.attempt,
            outcome=self.outcome,
            started_us=self._started_us,
            elapsed_ms=self.elapsed_ms(now_s),
            rows=self._last.rows,
            bytes=self._last.bytes,
            files=self._last.files,
        )

    def elapsed_ms(self, now_s: float) -> int:
        """Since it said hello."""
        return round((now_s - self.started_s) * 1_000)
