"""An engine that says what a test wants: tables of Arrow, errors, or nothing until it is let go."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pyarrow as pa

from cynosure.query.engine import (
    EngineQuery,
    FragmentReport,
    OnFragment,
    Results,
    RunningFragment,
    WorkerInfo,
)

Answer = Callable[[EngineQuery], "pa.Table | Exception"]


class SmallEngine:
    """An `Engine` and a `Cluster`."""

    def __init__(
        self,
        answer: Answer,
        *,
        name: str = "local",
        reason_against: str | None = None,
        workers: Sequence[WorkerInfo] = (),
        batch_rows: int = 1_000,
    ) -> None:
        self.name = name
        self.answer = answer
        self.reason_against = reason_against
        self.known_workers = list(workers)
        self.batch_rows = batch_rows
        self.queries: list[EngineQuery] = []
        """All that it was asked."""
        self.running = 0
        """Results that are not closed."""
        self.held: asyncio.Event | None = None
        """While set and not let go, no row comes."""
        self.ending: asyncio.Event | None = None
        """While set and not let go, results that are being closed are not yet."""
        self.error_after: tuple[int, Exception] | None = None
        """Fails behind so many batches."""
        self.renewing: SmallEngine | None = None
        """See `Renews`."""
        self.fragments: dict[str, list[RunningFragment]] | None = None
        """What it reads now, by the query; None: it does not say."""
        self.said: pa.Schema | None = None
        """What it says that the columns are, in place of the truth."""

    def find_reason_against(self, query: EngineQuery) -> str | None:
        """See `Engine`."""
        return self.reason_against

    def list_running(self, query_id: str) -> list[RunningFragment] | None:
        """See `TellsFragments`."""
        return None if self.fragments is None else self.fragments.get(query_id, [])

    async def execute(self, query: EngineQuery, on_fragment: OnFragment) -> Results:
        """See `Engine`."""
        self.queries.append(query)
        found = self.answer(query)
        if isinstance(found, Exception):
            raise found
        self.running += 1
        return _SmallResults(self, query, found, on_fragment)

    async def workers(self) -> Sequence[WorkerInfo]:
        """See `Cluster`."""
        return self.known_workers

    async def close(self) -> None:
        """See `Engine`."""


class _SmallResults:
    def __init__(
        self, engine: SmallEngine, query: EngineQuery, table: pa.Table, on_fragment: OnFragment
    ) -> None:
        self._engine = engine
        self._query = query
        self._table = table
        self._on_fragment = on_fragment
        self._is_closed = False

    @property
    def schema(self) -> pa.Schema:
        return self._engine.said or self._table.schema

    async def batches(self) -> AsyncIterator[pa.RecordBatch]:
        if self._engine.held is not None:
            await self._engine.held.wait()
        failing = self._engine.error_after
        for number, batch in enumerate(self._table.to_batches(self._engine.batch_rows)):
            if failing is not None and number >= failing[0]:
                raise failing[1]
            yield batch
        if failing is not None:
            raise failing[1]
        for relation in self._query.relations:
            for task in relation.fragments:
                self._on_fragment(FragmentReport(task.fragment_id, True, 1, 1, worker="here"))

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if self._engine.ending is not None:
                await self._engine.ending.wait()
            self._engine.running -= 1
