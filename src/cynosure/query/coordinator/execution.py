"""A planned query run: on the engine of its choice, or locally when distribution failed before any row.

    fragments elsewhere (`query.spark.fragment_retries`, by the broker) ─► what a native scan was refused:
    isolated, with credentials that are renewed ─► locally ─► the error

A maintainer must not break: once a row was given, nothing is tried again: the next attempt could give others.
And what a statement fails on by what it says (a division by zero) it fails on, wherever that was noticed.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from cynosure.common.errors import CynosureError, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.query.coordinator.distribution import FELL_BACK, OUTSIDE, RUN_ISOLATED, Choice
from cynosure.query.coordinator.metrics import FALLBACKS
from cynosure.query.engine import Engine, EngineQuery, OnFragment, Renews, Results
from cynosure.query.errors import OutOfMemory, QueryFailed, ScanBroken
from cynosure.storage.errors import StorageRefused

if TYPE_CHECKING:
    import pyarrow as pa

_NOT_ITS_FAULT: Final = (Unavailable, OutOfMemory, ScanBroken, StorageRefused)
"""What another place may do better: here are other memory, other ways to the storage, newer credentials."""
_log = Log(__name__)

Begun = Callable[["pa.Schema", Choice], Awaitable[None]]


class Execution:
    """Runs one query."""

    def __init__(
        self, query: EngineQuery, choice: Choice, *, local: Engine | None, fall_back_below: int
    ) -> None:
        self._query = query
        self._choice = choice
        self._local = local
        self._fall_back_below = fall_back_below

    async def batches(self, on_fragment: OnFragment, begun: Begun) -> AsyncGenerator["pa.RecordBatch"]:
        """The rows. `begun` is told the columns and the engine before the first, or before none."""
        has_rows = False
        choice = self._choice
        while True:
            try:
                async with aclosing(self._run(choice, on_fragment, begun)) as running:
                    async for batch in running:
                        has_rows = has_rows or batch.num_rows > 0
                        yield batch
                    return
            except CynosureError as error:
                found = None if has_rows else self._find_fallback(choice.engine, error)
                if found is None:
                    raise
                _log.event(
                    "query.distribution.failed",
                    level=WARNING,
                    statement=self._query.id,
                    kind=type(error).__name__,
                    next=found.reason,
                )
            choice = found
            if choice.engine is self._local:
                FALLBACKS.inc()

    async def _run(
        self, choice: Choice, on_fragment: OnFragment, begun: Begun
    ) -> AsyncGenerator["pa.RecordBatch"]:
        results = await choice.engine.execute(self._query, on_fragment)
        try:
            schema = name_columns(results, self._query)
            await begun(schema, choice)
            async for batch in results.batches():
                if batch.schema.types != schema.types:
                    raise _not_the_columns(self._query)
                yield batch
        finally:
            await results.close()

    def _find_fallback(self, tried: Engine, error: CynosureError) -> Choice | None:
        local = self._local
        if tried is local or not isinstance(error, _NOT_ITS_FAULT):
            return None
        if isinstance(error, StorageRefused) and isinstance(tried, Renews) and tried.renewing is not None:
            return Choice(tried.renewing, RUN_ISOLATED, RUN_ISOLATED)
        if local is None:
            return None
        if self._choice.reason == OUTSIDE or local.find_reason_against(self._query) is not None:
            return None
        if sum(each.total_bytes for each in self._query.relations) >= self._fall_back_below:
            _log.event(
                "query.distribution.failed_large",
                level=WARNING,
                statement=self._query.id,
                kind=type(error).__name__,
            )
            return None
        return Choice(local, FELL_BACK, FELL_BACK)


def name_columns(results: Results, query: EngineQuery) -> "pa.Schema":
    """The schema under the names that the statement gives its columns, where those are known."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    schema = results.schema
    if len(schema) != len(query.columns):
        return schema
    return pa.schema(
        [field.with_name(name or field.name) for field, name in zip(schema, query.columns, strict=True)]
    )


def _not_the_columns(query: EngineQuery) -> QueryFailed:
    return QueryFailed(
        "The engine gave other columns than it said",
        condition="INTERNAL_ERROR",
        fix="Give the statement's id to whoever runs the gateway.",
        statement=query.id,
    )
