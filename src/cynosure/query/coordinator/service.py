"""All statements of a gateway: taken, remembered, given to whoever sent them.

A maintainer must not break: a statement is found by its owner only; for everybody else it does not exist. One
that is refused before it is a statement is counted and recorded too.
"""

import asyncio
import random
import uuid
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, Conflict, CynosureError, NotFound
from cynosure.query.catalog_access.port import CatalogSession
from cynosure.query.coordinator import metrics
from cynosure.query.coordinator.admission import Admission
from cynosure.query.coordinator.auditing import Auditor
from cynosure.query.coordinator.inline import InlineTable
from cynosure.query.coordinator.refusing import REFUSED, make_event, redact_refused
from cynosure.query.coordinator.resources import Resources
from cynosure.query.coordinator.running import Running, digest_of
from cynosure.query.coordinator.runtime import StatementTasks, queries_table, tasks_table, workers_table
from cynosure.query.coordinator.statement import Page, State, StatementInfo, StatementRequest
from cynosure.query.coordinator.thinking import Thinking
from cynosure.query.engine import Cluster, Engine, RunningFragment, TellsFragments, WorkerInfo
from cynosure.query.settings import QuerySettings
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.statements import Statement

_REMEMBERED_S: Final = 600.0
"""For how long an ended statement is known."""
_MOST_REMEMBERED: Final = 2_000
_MOST_HELD_BYTES: Final = 512 * 2**20
"""Of results of ended statements that nobody fetched yet."""
_FLUSH_S: Final = 5.0


class StatementService:
    """A `Statements`: `cynosure.query.coordinator.statement`."""

    def __init__(
        self,
        settings: QuerySettings,
        clock: Clock,
        rng: random.Random,
        *,
        local: Engine | None,
        spark: Engine | None,
        cluster: Cluster | None,
        storage: dict[str, Any] | None = None,
        file_roots: tuple[str, ...] = (),
        memory_ratio: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`memory_ratio` says how much of its memory the local engine has reserved, from 0 to 1."""
        self._settings = settings
        self._clock = clock
        is_local = settings.local_execution == "on"
        self._resources = Resources(
            settings=settings,
            clock=clock,
            local=local if is_local else None,
            spark=spark,
            cluster=cluster,
            storage=storage or {},
            file_roots=file_roots,
            thinking=Thinking(settings.queued),
            choosing=asyncio.Lock(),
        )
        self._admission = Admission(settings, clock, memory_ratio)
        self._auditor = Auditor(clock, rng)
        self._known: OrderedDict[tuple[str, str], Running] = OrderedDict()
        self._workers: list[WorkerInfo] = []

    async def submit(self, session: CatalogSession, request: StatementRequest) -> StatementInfo:
        """See `Statements`."""
        statement_id = _check_id(request.statement_id)
        self._forget()
        known = self._known.get((session.owner, statement_id))
        if known is not None:
            return self._same(known, request)
        statement = await self._parse(session, request)
        if self._resources.cluster is not None:
            self._workers = list(await self._resources.cluster.workers())
        # While it was parsed, the same statement may have come again. From here on nothing is waited for.
        known = self._known.get((session.owner, statement_id))
        if known is not None:
            return self._same(known, request)
        self._admission.check(coming=sum(each.is_coming for each in self._known.values()))
        # Not the session: it has the user's token, and is dropped with the statement's end.
        owner = session.owner
        running = Running(
            self._resources,
            session,
            request,
            statement,
            statement_id=statement_id,
            admission=self._admission,
            auditor=self._auditor,
            runtime=lambda name: self._runtime_table(owner, name),
            on_end=self._bound_results,
        )
        self._known[session.owner, statement_id] = running
        return running.info()

    async def _parse(self, session: CatalogSession, request: StatementRequest) -> Statement:
        begun_s, max_bytes = self._clock.monotonic_s(), self._settings.max_sql_bytes
        work = partial(parse_statement, request.sql, parameters=request.parameters, max_bytes=max_bytes)
        try:
            return await self._resources.thinking.run(session.owner, work)
        except CynosureError as error:
            metrics.STATEMENTS.inc(state=State.FAILED.value, engine="none", reason=REFUSED)
            sql = await asyncio.to_thread(redact_refused, request.sql, max_bytes=max_bytes)
            elapsed_ms = int((self._clock.monotonic_s() - begun_s) * 1000)
            self._auditor.record(session, make_event(error, sql, elapsed_ms=elapsed_ms))
            raise

    async def get(self, session: CatalogSession, statement_id: str, *, wait_s: float = 0.0) -> StatementInfo:
        """See `Statements`."""
        running = self._find(session, statement_id)
        await running.wait(wait_s)
        return running.info()

    async def fetch(
        self, session: CatalogSession, statement_id: str, number: int, *, wait_s: float = 0.0
    ) -> Page | None:
        """See `Statements`."""
        return await self._find(session, statement_id).fetch(number, wait_s)

    async def cancel(self, session: CatalogSession, statement_id: str) -> StatementInfo:
        """See `Statements`."""
        running = self._find(session, statement_id)
        await running.cancel()
        return running.info()

    def list_own(self, session: CatalogSession) -> list[StatementInfo]:
        """See `Statements`."""
        self._forget()
        return [each.info() for each in self._own(session.owner)]

    def count_unfinished(self) -> int:
        """Statements that have not ended: what a gateway that ends waits for."""
        return sum(not each.is_ended for each in self._known.values())

    async def close(self) -> None:
        """See `Statements`."""
        await asyncio.gather(*(each.close() for each in self._known.values()))
        self._resources.thinking.close()
        await self._auditor.flush(_FLUSH_S)
        self._known.clear()

    def _find(self, session: CatalogSession, statement_id: str) -> Running:
        running = self._known.get((session.owner, statement_id))
        if running is None:
            raise NotFound(
                "There is no such statement",
                fix="It may have ended some time ago; send it again.",
                statement=statement_id[:100],
            )
        running.renew(session)
        return running

    def _same(self, known: Running, request: StatementRequest) -> StatementInfo:
        if known.digest != digest_of(request):
            raise Conflict(
                "The statement's id stands for another statement",
                fix="Choose a new id for every new statement.",
                statement=known.id,
            )
        return known.info()

    def _own(self, owner: str) -> list[Running]:
        own = [each for (whose, _), each in self._known.items() if whose == owner]
        return sorted(own, key=lambda each: -each.created_us)

    def _runtime_table(self, owner: str, name: str) -> InlineTable | None:
        own = self._own(owner)
        match name:
            case "queries":
                return queries_table((each.info(), each.user, each.redacted) for each in own)
            case "tasks":
                return tasks_table(
                    StatementTasks(each.id, each.state, each.fragments(), self._list_running(each))
                    for each in own
                )
            case "workers":
                return workers_table(self._workers)
        return None

    def _list_running(self, statement: Running) -> list[RunningFragment] | None:
        if statement.is_ended or not statement.engine:
            return []
        local = self._resources.local
        is_local = local is not None and local.name == statement.engine
        engine = local if is_local else self._resources.spark
        if engine is None or not isinstance(engine, TellsFragments):
            return None
        return engine.list_running(statement.query_id)

    def _forget(self) -> None:
        """Drop what ended long ago, and the oldest when there are too many."""
        now_s = self._clock.monotonic_s()
        ended = [(key, each) for key, each in self._known.items() if each.is_ended]
        surplus = len(self._known) - _MOST_REMEMBERED
        for place, (key, each) in enumerate(ended):
            if place < surplus or (each.ended_s is not None and now_s - each.ended_s > _REMEMBERED_S):
                del self._known[key]

    async def _bound_results(self) -> None:
        """Give up the oldest results that nobody fetches when all of them together are too large."""
        ended = [each for each in self._known.values() if each.is_ended and each.held_bytes]
        held_bytes = sum(each.held_bytes for each in ended)
        for each in ended:
            if held_bytes <= _MOST_HELD_BYTES:
                return
            held_bytes -= each.held_bytes
            await each.give_up_results()


def _check_id(wanted: str | None) -> str:
    if wanted is None:
        return str(uuid.uuid4())
    try:
        return str(uuid.UUID(wanted))
    except ValueError as error:
        raise BadInput(
            "The id of a statement is a UUID",
            field="statement_id",
            fix="Send a new UUID, or leave it out.",
        ) from error
