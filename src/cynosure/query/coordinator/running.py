"""One statement from its arrival to its end: waits, is answered, gives pages, is recorded.

A maintainer must not break: it ends in exactly one of FINISHED, FAILED and CANCELED, once; whatever it began
is closed before that; and it leaves exactly one audit event.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Iterator
from traceback import extract_tb
from typing import TYPE_CHECKING, Final

import msgspec

from cynosure.common.errors import CynosureError, Expired
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.common.telemetry.tracing import span
from cynosure.query.catalog_access.port import CatalogSession, QueryEvent
from cynosure.query.coordinator import metrics
from cynosure.query.coordinator.admission import Admission
from cynosure.query.coordinator.answering import Answering, redact_statement
from cynosure.query.coordinator.auditing import Auditor
from cynosure.query.coordinator.binding import Bound
from cynosure.query.coordinator.opening import Runtime
from cynosure.query.coordinator.paging import Pages
from cynosure.query.coordinator.relations import Planned
from cynosure.query.coordinator.resources import Resources
from cynosure.query.coordinator.scrubbing import Scrubber
from cynosure.query.coordinator.statement import (
    ENDED,
    Page,
    Progress,
    State,
    StatementInfo,
    StatementRequest,
)
from cynosure.query.engine import FragmentReport
from cynosure.query.errors import DeadlinePassed, QueryCancelled
from cynosure.query.sql.statements import Statement

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_SQL: Final = 10_000
"""Characters of a statement that are remembered when it has ended."""
_SUFFIX_BYTES: Final = 4
_log = Log(__name__)


def digest_of(request: StatementRequest) -> bytes:
    """What is the same for the same request."""
    # JSON, as it came: other encodings have no numbers of more than 64 bits, which decimals may be.
    return hashlib.sha256(msgspec.json.encode(request, enc_hook=str)).digest()


class Running:
    """A statement; also the `Sink` of its answer."""

    def __init__(
        self,
        resources: Resources,
        session: CatalogSession,
        request: StatementRequest,
        statement: Statement,
        *,
        statement_id: str,
        admission: Admission,
        auditor: Auditor,
        runtime: Runtime,
        on_end: Callable[[], Awaitable[None]],
    ) -> None:
        clock, settings = resources.clock, resources.settings
        self.id = statement_id
        self.query_id = f"{statement_id}-{secrets.token_hex(_SUFFIX_BYTES)}"
        """What engines and the audit know it by. The other is its user's choice: two users may choose the
        same, and one of them the same again, whose event would be taken for the first one's."""
        self.owner = session.owner
        self.user = session.user
        self.digest = digest_of(request)
        self.redacted = ""
        self.created_us = clock.now_us()
        self._clock = clock
        self._session = self._newest = session
        self._statement = statement
        self._admission = admission
        self._auditor = auditor
        self._on_end = on_end
        self._begun_s = clock.monotonic_s()
        self._ended_s: float | None = None
        limit_s = settings.timeout.total_seconds()
        wanted_s = limit_s if request.timeout_s is None else min(limit_s, request.timeout_s)
        self._deadline_s = self._begun_s + wanted_s
        self._idle_s = settings.idle_timeout.total_seconds()
        self._touched_s = self._begun_s
        self._answering = Answering(
            resources,
            session,
            request,
            query_id=self.query_id,
            deadline_s=self._deadline_s,
            runtime=runtime,
        )
        self._state = State.QUEUED
        self._has_come = False
        self._engine = self._reason = self._reason_kind = ""
        self._schema: pa.Schema | None = None
        self._error: CynosureError | None = None
        self._tables: tuple[str, ...] = ()
        self._policies: tuple[str, ...] = ()
        self._may_tell_numbers = False
        self._total_bytes = 0
        self._fragment_ids: tuple[str, ...] = ()
        self._reports: dict[str, FragmentReport] = {}
        self._is_ending = False
        self._why: CynosureError | None = None
        """Why it is being cancelled."""
        self._pages = Pages(settings.page_rows)
        self._scrubber = Scrubber(request.sql)
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._work = asyncio.create_task(self._run())
        self._watch = asyncio.create_task(self._watching())

    # What others ask.

    @property
    def state(self) -> State:
        """Where it is."""
        return self._state

    @property
    def is_ended(self) -> bool:
        """Whether nothing of it goes on any more."""
        return self._state in ENDED

    @property
    def is_coming(self) -> bool:
        """Whether it was taken, and is not among those yet that admission knows of."""
        return not (self._has_come or self.is_ended)

    @property
    def ended_s(self) -> float | None:
        """When it ended, on the monotonic clock."""
        return self._ended_s

    @property
    def engine(self) -> str:
        """Who answers; empty until it is known."""
        return self._engine

    def info(self) -> StatementInfo:
        """How it is now."""
        until_s = self._clock.monotonic_s() if self._ended_s is None else self._ended_s
        return StatementInfo(
            id=self.id,
            state=self._state,
            created_us=self.created_us,
            elapsed_ms=int((until_s - self._begun_s) * 1000),
            engine=self._engine,
            reason=self._reason,
            schema=self._schema,
            rows=self._pages.rows,
            progress=self._progress(),
            error=self._error,
            tables=self._tables,
            policies=self._policies,
        )

    def fragments(self) -> Iterator[FragmentReport | str]:
        """What is known of its fragments; nothing where that tells about hidden rows."""
        if not self._may_tell_numbers:
            return
        for id_ in self._fragment_ids:
            yield self._reports.get(id_, id_)

    async def wait(self, wait_s: float) -> None:
        """Until it changes, or so long."""
        self.touch()
        if self.is_ended or wait_s <= 0:
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def fetch(self, number: int, wait_s: float) -> Page | None:
        """A page; raises the statement's error when it failed."""
        self.touch()
        if self._error is not None:
            raise self._error.with_traceback(None)
        try:
            page = await self._pages.fetch(number, wait_s)
        except Expired:
            # It may have failed while the page was waited for.
            if self._error is not None:
                raise self._error.with_traceback(None) from None
            raise
        self.touch()
        return page

    async def cancel(self, why: CynosureError | None = None) -> None:
        """End it; returns when nothing of it goes on."""
        if self._why is None and not self._is_ending:
            self._why = why or QueryCancelled("The statement was cancelled")
            # Once: a second time would break off the closing of what it began.
            self._work.cancel()
        await asyncio.wait({self._work})
        if not self._is_ending:
            # It had not even begun.
            await self._end(State.CANCELED, self._why)

    def renew(self, session: CatalogSession) -> None:
        """Its user came again: the token that it began with may end before it does."""
        if not self._is_ending:
            self._newest = session

    def touch(self) -> None:
        """Somebody is still interested."""
        self._touched_s = self._clock.monotonic_s()

    @property
    def held_bytes(self) -> int:
        """Memory of its results."""
        return self._pages.held_bytes

    async def give_up_results(self) -> None:
        """Whoever fetches them is told that they are gone."""
        await self._pages.drop()

    async def close(self) -> None:
        """End it and whatever waits for it."""
        await self.cancel()
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)
        await self._pages.drop()

    # What its answer tells: `answering.Sink`.

    def bound(self, bound: Bound) -> None:
        """See `Sink`."""
        self._tables, self._policies = bound.tables, bound.policies
        self._may_tell_numbers = not bound.is_restricted

    def planned(self, planned: Planned) -> None:
        """See `Sink`."""
        self._total_bytes = planned.read_bytes
        self._scrubber.learn(planned.relations)
        self._fragment_ids = tuple(task.fragment_id for each in planned.relations for task in each.fragments)
        if self._may_tell_numbers:
            # Metrics may be read by anybody, and bytes tell which files hold a value, hidden or not.
            metrics.BYTES.inc(planned.read_bytes)
        self._notify()

    def chosen(self, engine: str, reason: str, shown: str) -> None:
        """See `Sink`."""
        self._engine, self._reason_kind, self._reason = engine, reason, shown

    def begun(self, schema: "pa.Schema") -> None:
        """See `Sink`."""
        self._schema = schema
        self._move(State.RUNNING)

    async def put(self, batch: "pa.RecordBatch") -> None:
        """See `Sink`."""
        await self._pages.put(batch)
        self._notify()

    def report(self, report: FragmentReport) -> None:
        """See `Sink`."""
        self._loop.call_soon_threadsafe(self._take, report)

    def clean_plan(self, text: str) -> str:
        """See `Sink`."""
        return self._scrubber.clean_plan(text)

    # Its life.

    async def _run(self) -> None:
        state, error = State.FAILED, None
        try:
            with span("query.statement"):
                self.redacted = await redact_statement(self._statement)
                self._has_come = True
                async with self._admission.admitted():
                    self._move(State.PLANNING)
                    await self._answering.answer(self._statement, self)
                # Whoever fetches slowly holds nobody up from here on.
                await self._pages.finish()
            state = State.FINISHED
        except asyncio.CancelledError:
            why = self._why or QueryCancelled("The gateway ended the statement", fix="Send it again.")
            state = State.CANCELED if isinstance(why, QueryCancelled) else State.FAILED
            error = why
        except Exception as raised:
            if not isinstance(raised, CynosureError):
                # Its words may hold values of rows: where it happened is enough to find it.
                _log.event(
                    "query.statement.broken",
                    level=ERROR,
                    statement=self.id,
                    kind=type(raised).__name__,
                    places=[f"{each.name}:{each.lineno}" for each in extract_tb(raised.__traceback__)],
                )
            error = self._scrubber.scrub(raised)
        await self._end(state, error)

    async def _end(self, state: State, error: CynosureError | None) -> None:
        self._is_ending = True
        if error is not None:
            # Frames would keep alive all that the statement had, credentials too.
            error.__cause__ = error.__context__ = None
            self._error = error.with_traceback(None)
        self._ended_s = self._clock.monotonic_s()
        if state is not State.FINISHED:
            await self._pages.drop()
        self._move(state)
        engine = self._engine or "none"
        metrics.STATEMENTS.inc(state=state.value, engine=engine, reason=self._reason_kind)
        metrics.SECONDS.observe(self._ended_s - self._begun_s, engine=engine)
        metrics.ROWS.inc(self._pages.rows)
        event = self._event()
        _log.event(
            "query.statement.ended",
            statement=self.id,
            state=state.value,
            engine=engine,
            reason=self._reason_kind,
            elapsed_ms=event.elapsed_ms,
            rows=event.rows,
            kind=event.error,
        )
        self._auditor.record(self._session, event, newest=self._newest)
        # What is remembered is small, and holds neither the user's token nor credentials nor constants.
        del self._session, self._newest, self._answering, self._statement, self._scrubber
        self.redacted = self.redacted[:_MOST_SQL]
        await self._on_end()

    def _event(self) -> QueryEvent:
        info = self.info()
        return QueryEvent(
            statement_id=self.query_id,
            outcome=self._state.value,
            sql=self.redacted,
            tables=info.tables,
            policies=info.policies,
            rows=info.rows,
            bytes=self._total_bytes,
            elapsed_ms=info.elapsed_ms,
            engine=self._engine or "none",
            reason=self._reason,
            error="" if self._error is None else type(self._error).__name__,
        )

    async def _watching(self) -> None:
        """End it when its time is over, or when nobody fetches its results."""
        while not self.is_ended or (self._state is State.FINISHED and not self._pages.is_fetched):
            now_s = self._clock.monotonic_s()
            idle_at_s = self._touched_s + self._idle_s
            if now_s >= idle_at_s:
                await self.cancel(
                    QueryCancelled("Nobody fetched the results for too long", fix="Send the statement again.")
                )
                await self._pages.drop()
                return
            if not self.is_ended and now_s >= self._deadline_s:
                await self.cancel(
                    DeadlinePassed(
                        "The statement took longer than it may",
                        fix="Ask for less, or allow more time (timeout of the statement, query.timeout).",
                    )
                )
                return
            until_s = idle_at_s if self.is_ended else min(idle_at_s, self._deadline_s)
            await self._clock.sleep(max(0.001, until_s - now_s))

    def _take(self, report: FragmentReport) -> None:
        known = self._reports.get(report.fragment_id)
        # Spark may read a fragment twice; and a success is not taken back by an attempt that came too late.
        if known is None or not known.is_success:
            self._reports[report.fragment_id] = report
        self._notify()

    def _progress(self) -> Progress:
        if not self._may_tell_numbers:
            return Progress()
        done = [each for each in self._reports.values() if each.is_success]
        return Progress(
            fragments=len(self._fragment_ids),
            fragments_done=len(done),
            rows_scanned=sum(each.rows for each in done),
            bytes_scanned=sum(each.bytes for each in done),
            bytes_total=self._total_bytes,
        )

    def _move(self, state: State) -> None:
        if not self.is_ended:
            self._state = state
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
