"""A remote with its limits, breaker, deadline, retries and numbers around it.

The remote itself is opened by the first request that needs it, and again by one that comes after it was put
to rest; breaker, health and budget stay meanwhile.

A maintainer must not break: a change is sent at most once; and what ends in the middle of one, by our
deadline or by an error that nobody foresaw, is `OutcomeUnknown`.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeVar

from cynosure.catalog.names import Identifier, Namespace
from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown, Unavailable
from cynosure.common.retry import Backoff
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.common.telemetry.request_scope import current_scope
from cynosure.common.telemetry.tracing import span
from cynosure.federation.errors import FederationOff, RemoteBusy, RemoteMisbehaved, RemoteUnavailable
from cynosure.federation.guard import metrics
from cynosure.federation.guard.breaker import Breaker, BreakerState, Ticket
from cynosure.federation.guard.health import Health, Record
from cynosure.federation.guard.limits import Limit
from cynosure.federation.guard.retries import RetryBudget
from cynosure.federation.remote import (
    Abilities,
    NamesPage,
    NewTable,
    RemoteCatalog,
    RemoteTable,
    RemoteView,
    TableCommit,
    Tag,
    Unchanged,
    ViewCommit,
)
from cynosure.federation.settings import FederationSettings
from cynosure.iceberg.views import ViewMetadata

T = TypeVar("T")
Call = Callable[[RemoteCatalog], Awaitable[T]]

_log: Final = Log("federation")
_ITS_OWN_TROUBLE: Final = 500
"""Up to here it answered about this one request: at most with a mistake of its own, or that it comes too soon
(429). Above, something before it did; or it did, that it is there for nobody now (503). Neither a failure nor
a success: whoever knows how to make a remote stumble must not close the catalog to all others."""
_GAUGE: Final[Mapping[BreakerState, float]] = {"closed": 0, "half-open": 1, "open": 2}
_FIRST_WAIT_S: Final = 0.05
_LONGEST_WAIT_S: Final = 1.0
_WHOLE: Final = 0.9
"""Of the time for an answer. Who had less, because it waited for its turn, cannot say that none came."""


class GuardedRemote:
    """A `RemoteCatalog` around another one."""

    def __init__(
        self,
        name: str,
        open_remote: Callable[[], RemoteCatalog],
        settings: FederationSettings,
        clock: Clock,
        rng: random.Random,
        *,
        mark: str = "",
    ) -> None:
        """`mark` is what metrics tell the catalog from others by; without, its numbers are of no one."""
        self.name = name
        self.mark = mark
        self._open = open_remote
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._label = metrics.label_of(mark)
        metrics.BREAKER.set(0, catalog=self._label)
        self._inner: RemoteCatalog | None = None
        self._using = 0
        self._is_retired = False
        self._limit = Limit(settings, queued=self._note_queued)
        self._breaker = Breaker(settings, clock, rng, moved=self._note_breaker)
        self._budget = RetryBudget(clock)
        self._record = Record()
        self._used_s = clock.monotonic_s()

    # -- what it is, and how it is

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        return self._remote().abilities

    @property
    def is_open(self) -> bool:
        """Whether it holds connections, or may."""
        return self._inner is not None

    @property
    def is_busy(self) -> bool:
        """Whether requests are under way or wait."""
        return self._using > 0

    @property
    def idle_s(self) -> float:
        """Seconds since it was last used."""
        return self._clock.monotonic_s() - self._used_s

    def health(self) -> Health:
        """How it is."""
        record = self._record
        return Health(
            breaker=self._breaker.state,
            retry_after_ms=round(self._breaker.open_s * 1_000),
            running=self._limit.running,
            waiting=self._limit.waiting,
            failures=record.failures,
            last_success_ms=record.last_success_us // 1_000,
            last_failure_ms=record.last_failure_us // 1_000,
            last_error=record.last_error,
        )

    async def rest(self) -> None:
        """End its connections unless it is used; the next request opens it again."""
        if self._using == 0 and self._inner is not None:
            inner, self._inner = self._inner, None
            await _close(inner, self.name)

    async def retire(self) -> None:
        """Let what is under way end on it, and end its connections then."""
        self._is_retired = True
        await self.rest()

    async def close(self) -> None:
        """End its connections now; who waits for an answer does not get one."""
        self._is_retired = True
        inner, self._inner = self._inner, None
        if inner is not None:
            await _close(inner, self.name)

    # -- what changes nothing

    async def check(self) -> None:  # noqa: D102 - as the port says; so are all below
        await self._read("check", lambda remote: remote.check())

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:  # noqa: D102
        return await self._read(
            "list_namespaces", lambda remote: remote.list_namespaces(parent, token=token, size=size)
        )

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:  # noqa: D102
        return await self._read("load_namespace", lambda remote: remote.load_namespace(namespace))

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:  # noqa: D102
        return await self._read(
            "list_tables", lambda remote: remote.list_tables(namespace, token=token, size=size)
        )

    async def load_table(self, table: Identifier, known: Tag | None = None) -> RemoteTable | Unchanged:  # noqa: D102
        return await self._read("load_table", lambda remote: remote.load_table(table, known))

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:  # noqa: D102
        return await self._read(
            "list_views", lambda remote: remote.list_views(namespace, token=token, size=size)
        )

    async def load_view(self, view: Identifier, known: Tag | None = None) -> RemoteView | Unchanged:  # noqa: D102
        return await self._read("load_view", lambda remote: remote.load_view(view, known))

    # -- what changes something

    async def create_namespace(  # noqa: D102
        self, namespace: Namespace, properties: Mapping[str, str], *, key: str | None = None
    ) -> Mapping[str, str]:
        return await self._change(
            "create_namespace", lambda remote: remote.create_namespace(namespace, properties, key=key)
        )

    async def update_namespace(  # noqa: D102
        self,
        namespace: Namespace,
        *,
        removals: Sequence[str],
        updates: Mapping[str, str],
        key: str | None = None,
    ) -> None:
        await self._change(
            "update_namespace",
            lambda remote: remote.update_namespace(namespace, removals=removals, updates=updates, key=key),
        )

    async def drop_namespace(self, namespace: Namespace, *, key: str | None = None) -> None:  # noqa: D102
        await self._change("drop_namespace", lambda remote: remote.drop_namespace(namespace, key=key))

    async def create_table(self, wanted: NewTable, *, key: str | None = None) -> RemoteTable:  # noqa: D102
        return await self._change("create_table", lambda remote: remote.create_table(wanted, key=key))

    async def register_table(  # noqa: D102
        self, table: Identifier, metadata_location: str, *, is_overwrite: bool, key: str | None = None
    ) -> RemoteTable:
        return await self._change(
            "register_table",
            lambda remote: remote.register_table(
                table, metadata_location, is_overwrite=is_overwrite, key=key
            ),
        )

    async def commit_table(self, change: TableCommit, *, key: str | None = None) -> RemoteTable:  # noqa: D102
        return await self._change("commit_table", lambda remote: remote.commit_table(change, key=key))

    async def commit_transaction(self, changes: Sequence[TableCommit], *, key: str | None = None) -> None:  # noqa: D102
        await self._change("commit_transaction", lambda remote: remote.commit_transaction(changes, key=key))

    async def drop_table(self, table: Identifier, *, is_purge: bool, key: str | None = None) -> None:  # noqa: D102
        await self._change("drop_table", lambda remote: remote.drop_table(table, is_purge=is_purge, key=key))

    async def rename_table(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:  # noqa: D102
        await self._change("rename_table", lambda remote: remote.rename_table(source, target, key=key))

    async def create_view(  # noqa: D102
        self, view: Identifier, metadata: ViewMetadata, *, key: str | None = None
    ) -> RemoteView:
        return await self._change("create_view", lambda remote: remote.create_view(view, metadata, key=key))

    async def register_view(  # noqa: D102
        self, view: Identifier, metadata_location: str, *, key: str | None = None
    ) -> RemoteView:
        return await self._change(
            "register_view", lambda remote: remote.register_view(view, metadata_location, key=key)
        )

    async def commit_view(self, change: ViewCommit, *, key: str | None = None) -> RemoteView:  # noqa: D102
        return await self._change("commit_view", lambda remote: remote.commit_view(change, key=key))

    async def drop_view(self, view: Identifier, *, key: str | None = None) -> None:  # noqa: D102
        await self._change("drop_view", lambda remote: remote.drop_view(view, key=key))

    async def rename_view(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:  # noqa: D102
        await self._change("rename_view", lambda remote: remote.rename_view(source, target, key=key))

    # -- how all of them go

    async def _read(self, operation: str, call: Call[T]) -> T:
        return await self._guard(operation, call, retries=self._settings.retries, is_change=False)

    async def _change(self, operation: str, call: Call[T]) -> T:
        return await self._guard(operation, call, retries=0, is_change=True)

    async def _guard(self, operation: str, call: Call[T], *, retries: int, is_change: bool) -> T:
        self._require_on(operation)
        # Whose line it waits in; work that nobody asked for is in one of its own.
        who = current_scope().principal
        timeout_s = self._settings.timeout / timedelta(seconds=1)
        backoff = Backoff(
            self._clock, self._rng, first_s=_FIRST_WAIT_S, max_s=_LONGEST_WAIT_S, deadline_s=timeout_s
        )
        self._using += 1
        self._budget.note_request()
        try:
            while True:
                ticket = await self._enter(operation, who, backoff.remaining_s)
                try:
                    # What was waited for a turn is no reason to give a change up half way.
                    answer_s = timeout_s if is_change else backoff.remaining_s
                    with span(f"federation.{operation}", catalog=self.name):
                        return await self._send(operation, call, (ticket, who), answer_s, is_change)
                except Unavailable:
                    if backoff.waits >= retries or not self._budget.take() or not await backoff.wait():
                        raise
                    metrics.RETRIES.inc(catalog=self._label)
        finally:
            self._using -= 1
            self._used_s = self._clock.monotonic_s()
            if self._is_retired:
                await asyncio.shield(self.rest())

    def _require_on(self, operation: str) -> None:
        if not self._settings.enabled:
            metrics.REQUESTS.inc(catalog=self._label, operation=operation, outcome="off")
            raise FederationOff(self.name)

    async def _enter(self, operation: str, who: str, wait_s: float) -> Ticket:
        """A turn at the remote. Nothing was sent when there is none."""
        # Asked before the turn too: nobody should wait in a queue for a remote that is left alone.
        if self._breaker.state == "open":
            raise self._turn_away(operation, "left-alone", "It failed several times and is left alone now.")
        try:
            async with asyncio.timeout(wait_s):
                has_turn = await self._limit.acquire(who)
        except TimeoutError:
            raise self._turn_away(operation, "full", "Too many requests were before this one.") from None
        if not has_turn:
            raise self._turn_away(operation, "full", "Too many requests wait for it.")
        ticket = self._breaker.admit()
        if ticket is None:
            self._limit.release(who)
            raise self._turn_away(operation, "left-alone", "It failed several times and is left alone now.")
        return ticket

    def _turn_away(self, operation: str, outcome: str, reason: str) -> RemoteUnavailable:
        metrics.REQUESTS.inc(catalog=self._label, operation=operation, outcome=outcome)
        kind = RemoteBusy if outcome == "full" else RemoteUnavailable
        return kind(self.name, reason=reason)

    async def _send(
        self, operation: str, call: Call[T], turn: tuple[Ticket, str], timeout_s: float, is_change: bool
    ) -> T:
        ticket, who = turn
        began_s = self._clock.monotonic_s()
        outcome = "cancelled"
        try:
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await call(self._remote())
            except Exception as error:
                told = self._translate(operation, error, is_change=is_change)
                is_cut = isinstance(error, TimeoutError) and self._is_short(timeout_s)
                outcome = self._note_failure(ticket, told, is_cut=is_cut)
                if told is error:
                    raise
                raise told from error
            outcome = "answered"
            self._note_answer(ticket)
            return answer
        finally:
            if outcome == "cancelled":
                self._breaker.abandon(ticket)
            self._limit.release(who)
            metrics.REQUESTS.inc(catalog=self._label, operation=operation, outcome=outcome)
            metrics.SECONDS.observe(self._clock.monotonic_s() - began_s, catalog=self._label)

    def _translate(self, operation: str, error: Exception, *, is_change: bool) -> CynosureError:
        """An error as callers are told it: declared ones as they are, all others without their words."""
        if isinstance(error, CynosureError):
            return error
        _log.event(
            "federation.stranger",
            level=WARNING,
            catalog=self.name,
            operation=operation,
            kind=type(error).__name__,
        )
        # Timeouts are kinds of it.
        is_lost = isinstance(error, OSError)
        if is_change:
            told = {} if is_lost else {"status": "unusable"}
            return OutcomeUnknown(
                "The remote catalog did not say whether it did this",
                fix="Load what was to be changed, and see.",
                catalog=self.name,
                **told,
            )
        if is_lost:
            return RemoteUnavailable(self.name, reason="It did not answer in time.")
        return RemoteMisbehaved(self.name, problem="its answer could not be understood")

    def _is_short(self, timeout_s: float) -> bool:
        return timeout_s < _WHOLE * (self._settings.timeout / timedelta(seconds=1))

    def _note_failure(self, ticket: Ticket, error: CynosureError, *, is_cut: bool) -> str:
        """What became of it, in one word. Only what was not answered is a failure of the remote."""
        if isinstance(error, RemoteUnavailable | OutcomeUnknown):
            if is_cut or _is_answered(error):
                self._breaker.abandon(ticket)
            else:
                self._breaker.fail(ticket)
            self._record.fail(self._clock.now_us(), error)
            return "unknown" if isinstance(error, OutcomeUnknown) else "unavailable"
        self._note_answer(ticket)
        if isinstance(error, RemoteMisbehaved):
            self._record.last_error = type(error).__name__
            self._record.last_failure_us = self._clock.now_us()
            return "misbehaved"
        return "refused"

    def _note_answer(self, ticket: Ticket) -> None:
        self._breaker.succeed(ticket)
        self._record.succeed(self._clock.now_us())

    def _remote(self) -> RemoteCatalog:
        if self._inner is None:
            self._inner = self._open()
        return self._inner

    def _note_queued(self, change: int) -> None:
        metrics.QUEUED.inc(change, catalog=self._label)

    def _note_breaker(self, state: BreakerState) -> None:
        metrics.BREAKER.set(_GAUGE[state], catalog=self._label)
        if state != "half-open":
            _log.event("federation.breaker", level=WARNING, catalog=self.name, state=state)


def _is_answered(error: CynosureError) -> bool:
    """Whether the remote said something, though nothing that settles the request."""
    status = error.details.get("status")
    return isinstance(status, str) or (isinstance(status, int) and status <= _ITS_OWN_TROUBLE)


async def _close(inner: RemoteCatalog, name: str) -> None:
    try:
        await inner.close()
    except Exception as error:
        # It is on its way out: nobody can do anything about it, and others are to be closed too.
        _log.event("federation.close_failed", level=WARNING, catalog=name, kind=type(error).__name__)
