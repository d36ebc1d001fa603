"""The gateway's end of all fragment streams.

    accept ─► TLS and Hello within 5 s ─► token? ─► attempt? ─► Assigned ─► Beats ─► Done | Left | Failed
    watch  ─► no beat: lost, killed     beats without moving: probed, stuck, killed

Whoever has not shown a token yet is told nothing, gets little memory, and when there are too many of them the
oldest is dropped: real scans say hello within milliseconds.

A maintainer must not break: nothing is read beyond a hello's few bytes, and nothing is sent, before the token
is good. Whatever goes wrong with one connection ends that connection only.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, Misconfigured
from cynosure.common.telemetry.logs import INFO, WARNING, Log
from cynosure.query.broker import metrics
from cynosure.query.broker.brokered import BrokeredQuery, KillAttempt
from cynosure.query.broker.certificate import BrokerTls, make_tls
from cynosure.query.broker.live_stream import LiveStream
from cynosure.query.broker.registry import WorkerRegistry
from cynosure.query.broker.runtime import Outcome, RuntimeRecord, TaskRow
from cynosure.query.broker.tokens import is_good
from cynosure.query.engine import OnFragment, Relation, WorkerInfo
from cynosure.query.refreshing import CredentialRefresher
from cynosure.query.settings import BrokerSettings
from cynosure.query.stream.frames import Beat, Done, Failed, Hello, Left, Refused, Up
from cynosure.query.stream.framing import MAX_HELLO_BYTES, MAX_UP_BYTES, encode_frame, read_up

HELLO_S: Final = 5.0
"""From the connection to the hello, the handshake included."""
MAX_STRANGERS: Final = 256
"""Connections without a good token at one time."""
_HANG_UP_S: Final = 2.0
_BACKLOG: Final = 512

_log = Log(__name__)
_BROKEN: Final = (OSError, ssl.SSLError, asyncio.IncompleteReadError)
"""Ends of a connection that are no message."""


class Broker:
    """Hands out scan tasks to executors, and knows how they fare. One event loop only."""

    def __init__(
        self, settings: BrokerSettings, clock: Clock, *, refresher: CredentialRefresher | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._beat_s = settings.heartbeat.total_seconds()
        self._patience_s = self._beat_s * settings.missed_heartbeats
        self._stuck_s = settings.stuck_after.total_seconds()
        self.refresher = refresher or CredentialRefresher(settings, clock)
        self.registry = WorkerRegistry(settings, clock)
        self.runtime = RuntimeRecord(self._running, self.registry.workers)
        self._queries: dict[str, BrokeredQuery] = {}
        self._connections: dict[asyncio.Task[None], socket.socket | None] = {}
        """With sockets that no transport looks after yet."""
        self._strangers: dict[asyncio.Task[None], None] = {}
        self._loops: list[asyncio.Task[None]] = []
        self._socket: socket.socket | None = None
        self._tls: BrokerTls | None = None
        self._address = ""

    async def start(self) -> None:
        """Listen. `Misconfigured` when that cannot work."""
        host = self._settings.host
        advertised = self._settings.advertised_host or host
        if advertised in ("0.0.0.0", "::", ""):  # noqa: S104 - refused, not used
            raise Misconfigured(
                "Executors cannot reach an address that stands for all",
                fix="Set query.broker.advertised_host to what executors call this machine.",
                field="query.broker.advertised_host",
            )
        self._tls = make_tls(frozenset({host, advertised}), self._clock)
        self._socket = await _listen(host, self._settings.port)
        port = self._socket.getsockname()[1]
        self._address = f"[{advertised}]:{port}" if ":" in advertised else f"{advertised}:{port}"
        self.refresher.start()
        self._loops = [
            asyncio.create_task(self._accept(self._socket), name="broker-accept"),
            asyncio.create_task(self._watch(), name="broker-watch"),
        ]
        _log.event("broker.started", level=INFO, address=self._address)

    async def close(self) -> None:
        """End everything."""
        for query in list(self._queries.values()):
            query.close()
        tasks = [*self._loops, *self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loops = []
        await self.refresher.close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def open_query(
        self,
        query_id: str,
        relations: Iterable[Relation],
        on_fragment: OnFragment,
        kill_attempt: KillAttempt,
        retries: int,
        count_slots: Callable[[], int] = lambda: 0,
    ) -> BrokeredQuery:
        """Make a statement's fragments available to who has their tokens. The caller closes it."""
        if self._tls is None or query_id in self._queries:
            raise Misconfigured("The broker is not started, or knows this statement already")
        query = BrokeredQuery(
            query_id,
            relations,
            address=self._address,
            ca_pem=self._tls.ca_pem,
            refresher=self.refresher,
            on_fragment=on_fragment,
            kill_attempt=kill_attempt,
            retries=retries,
            count_slots=count_slots,
            forget=self._forget,
        )
        self._queries[query_id] = query
        return query

    def workers(self) -> list[WorkerInfo]:
        """All that are known, healthy or not."""
        return self.registry.workers()

    def _forget(self, query: BrokeredQuery) -> None:
        self._queries.pop(query.query_id, None)

    def _running(self) -> list[TaskRow]:
        now_s = self._clock.monotonic_s()
        return [stream.row(now_s) for query in self._queries.values() for stream in query.live()]

    # Connections

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                # Out of file descriptors, most likely: others may be closed meanwhile.
                _log.event("broker.not_accepted", level=WARNING, reason=error.strerror)
                await self._clock.sleep(0.1)
                continue
            if len(self._strangers) >= MAX_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                oldest.cancel()
                metrics.REFUSED.inc(reason="crowd")
            task = asyncio.create_task(self._serve(connection))
            self._connections[task] = connection
            self._strangers[task] = None
            task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[None]) -> None:
        if (connection := self._connections.pop(task, None)) is not None:
            # Ended before it had its first turn.
            connection.close()
        self._strangers.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.event("broker.connection_failed", level=WARNING, kind=type(error).__name__)

    async def _serve(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with asyncio.timeout(HELLO_S):
                reader, writer = await self._secure(connection)
                try:
                    hello = await read_up(reader, MAX_HELLO_BYTES)
                except BaseException:
                    writer.transport.abort()
                    raise
        except (TimeoutError, CynosureError, *_BROKEN):
            metrics.REFUSED.inc(reason="no_hello")
            return
        try:
            await self._greet(hello, reader, writer)
        finally:
            # What was written before, a Stop for instance, still goes out.
            writer.close()

    async def _secure(self, connection: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        self._connections[_this_task()] = None
        reader = asyncio.StreamReader(limit=MAX_UP_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        assert self._tls is not None  # noqa: S101 - nobody is accepted before
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=self._tls.context,
            ssl_handshake_timeout=HELLO_S,
            ssl_shutdown_timeout=_HANG_UP_S,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _greet(self, hello: Up, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not isinstance(hello, Hello):
            metrics.REFUSED.inc(reason="no_hello")
            return
        query = self._queries.get(hello.query_id)
        # Unknown statements cost what unknown tokens cost.
        is_known = query.knows(hello.fragment_id, hello.token) if query else is_good(hello.token, None)
        if query is None or not is_known:
            metrics.REFUSED.inc(reason="bad_token")
            return
        self._strangers.pop(_this_task(), None)
        if (refusal := query.admit(hello)) is not None:
            metrics.REFUSED.inc(reason=refusal)
            writer.write(encode_frame(Refused(refusal)))
            return
        now_s = self._clock.monotonic_s()
        stream = LiveStream(hello, writer, query.shown(hello.fragment_id), now_s, self._clock.now_us())
        if (fenced := query.begin(stream)) is not None:
            fenced.settle(Outcome.FENCED)
            fenced.stop("A newer attempt reads this fragment")
        metrics.STREAMS.inc()
        self.registry.begin(hello.worker)
        failed = None
        try:
            failed = await self._converse(query, stream, reader)
        finally:
            self._end(query, stream, failed)

    async def _converse(
        self, query: BrokeredQuery, stream: LiveStream, reader: asyncio.StreamReader
    ) -> Failed | None:
        """Until one side ends it, which sets the outcome."""
        failed: Failed | None = None
        try:
            frame = encode_frame(query.assignment(stream.hello.fragment_id, self._beat_s))
            await stream.send_task(frame)
            while stream.is_running:
                match message := await read_up(reader):
                    case Beat():
                        self.registry.beat(stream.hello.worker)
                        stream.hear(message, self._clock.monotonic_s())
                    case Done():
                        stream.complete(message)
                        stream.settle(Outcome.DONE)
                    case Left():
                        stream.complete(message)
                        stream.settle(Outcome.LEFT)
                    case Failed():
                        failed = message
                        stream.settle(Outcome.FAILED)
                    case Hello():
                        failed = Failed("QueryFailed", "A scan said what it must not say")
                        stream.settle(Outcome.FAILED)
        except _BROKEN:
            stream.settle(Outcome.CLOSED)
        except CynosureError as error:
            failed = Failed(type(error).__name__, error.message, error.fix, is_worth_retrying=False)
            stream.settle(Outcome.FAILED)
        # Whoever ended it before it said so does not care.
        return failed if stream.outcome is Outcome.FAILED else None

    def _end(self, query: BrokeredQuery, stream: LiveStream, failed: Failed | None) -> None:
        stream.settle(Outcome.STOPPED)
        now_s = self._clock.monotonic_s()
        self.registry.end(stream.hello.worker)
        if failed is not None and failed.is_worth_retrying:
            # Elsewhere it may go better. What fails everywhere is not the worker's fault.
            self.registry.mark_unhealthy(stream.hello.worker)
        metrics.STREAMS.inc(-1)
        metrics.FRAGMENTS.inc(outcome=stream.outcome)
        self.runtime.ended(stream.row(now_s))
        if stream.outcome not in (Outcome.DONE, Outcome.LEFT, Outcome.STOPPED):
            _log.event(
                "broker.scan_ended",
                level=WARNING,
                query=stream.hello.query_id,
                fragment=stream.hello.fragment_id,
                worker=stream.hello.worker,
                attempt=stream.hello.attempt,
                outcome=stream.outcome,
                kind="" if failed is None else failed.kind,
            )
        query.end(stream, failed, stream.elapsed_ms(now_s))

    # Health

    async def _watch(self) -> None:
        tick_s = self._beat_s / 2
        last_s = self._clock.monotonic_s()
        while True:
            await self._clock.sleep(tick_s)
            now_s = self._clock.monotonic_s()
            late_s, last_s = now_s - last_s - tick_s, now_s
            for query in list(self._queries.values()):
                for stream in query.live():
                    if late_s > tick_s:
                        stream.forgive(late_s)
                    self._check(query, stream, now_s)
            workers = self.registry.workers()
            metrics.WORKERS.set(len(workers))
            metrics.WORKERS_HEALTHY.set(sum(each.is_healthy for each in workers))

    def _check(self, query: BrokeredQuery, stream: LiveStream, now_s: float) -> None:
        if not stream.is_running:
            return
        if now_s - stream.beat_s >= self._patience_s:
            stream.settle(Outcome.LOST)
            stream.abort()
        elif now_s - stream.moved_s >= self._stuck_s:
            stream.settle(Outcome.STUCK)
            metrics.PROBES_FAILED.inc()
            stream.stop("The scan does not move")
        else:
            stream.probe_if_idle(now_s, self._beat_s)
            return
        self.registry.mark_unhealthy(stream.hello.worker)
        query.kill(stream)


def _this_task() -> asyncio.Task[None]:
    task: asyncio.Task[None] | None = asyncio.current_task()
    assert task is not None  # noqa: S101 - called by a task
    return task


async def _listen(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    try:
        family, kind, proto, _, address = (
            await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        )[0]
        listening = socket.socket(family, kind, proto)
        try:
            with suppress(OSError):
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening
    except OSError as error:
        raise Misconfigured(
            "The broker cannot listen there",
            fix="Choose an address of this machine and a free port: query.broker.host, query.broker.port.",
            host=host,
            port=port,
            reason=error.strerror,
        ) from error
