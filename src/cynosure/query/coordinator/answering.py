"""What a statement does, once it may begin: queries, EXPLAIN, SHOW, DESCRIBE.

A maintainer must not break: policies are looked up here, for every statement, after it was admitted; and a
plan under other policies than those that were bound is thrown away, and everything done anew.
"""

import asyncio
import secrets
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from cynosure.common.errors import Conflict
from cynosure.common.telemetry.tracing import span
from cynosure.query.catalog_access.port import CatalogSession, OpenedView
from cynosure.query.coordinator.binding import Binder, Bound
from cynosure.query.coordinator.distribution import NOT_AN_ENGINE, Choice, Facts
from cynosure.query.coordinator.execution import Execution, name_columns
from cynosure.query.coordinator.explaining import explain
from cynosure.query.coordinator.mappings import Mappings, MappingScan
from cynosure.query.coordinator.opening import Runtime
from cynosure.query.coordinator.relations import Planned, RelationPlanner
from cynosure.query.coordinator.resources import Resources
from cynosure.query.coordinator.showing import Shower, columns_table, lines_table
from cynosure.query.coordinator.statement import StatementRequest
from cynosure.query.engine import EngineQuery, FragmentReport, SessionValues, WorkerInfo
from cynosure.query.sql.dialect import WRITTEN
from cynosure.query.sql.parse import select_all
from cynosure.query.sql.redact import redact
from cynosure.query.sql.statements import Describe, Explain, Query, Show, Statement

if TYPE_CHECKING:
    import pyarrow as pa

_BINDINGS: Final = 3
"""How often a statement is bound when policies change under it."""
_SALT_BYTES: Final = 32
ENGINE_OF_COORDINATOR: Final = "none"


class Sink(Protocol):
    """Takes what a statement gives."""

    def bound(self, bound: Bound) -> None:
        """Which tables it reads, under which policies."""
        ...

    def planned(self, planned: Planned) -> None:
        """What is going to be read."""
        ...

    def chosen(self, engine: str, reason: str, shown: str) -> None:
        """Who answers, and why."""
        ...

    def begun(self, schema: "pa.Schema") -> None:
        """Its columns."""
        ...

    async def put(self, batch: "pa.RecordBatch") -> None:
        """Some rows."""
        ...

    def report(self, report: FragmentReport) -> None:
        """A fragment ended. May come from any thread."""
        ...

    def clean_plan(self, text: str) -> str:
        """An engine's plan without secrets of the statement."""
        ...


@runtime_checkable
class Explains(Protocol):
    """An engine that can say how it would run a query."""

    async def explain(self, query: EngineQuery) -> str:
        """Its plan, without running anything."""
        ...


class Ready:
    """A query that an engine could run."""

    def __init__(self, bound: Bound, planned: Planned, query: EngineQuery, choice: Choice) -> None:
        self.bound = bound
        self.planned = planned
        self.query = query
        self.choice = choice


class Answering:
    """Answers one statement."""

    def __init__(
        self,
        resources: Resources,
        session: CatalogSession,
        request: StatementRequest,
        *,
        query_id: str,
        deadline_s: float,
        runtime: Runtime,
    ) -> None:
        self._resources = resources
        self._session = session
        self._request = request
        self._id = query_id
        self._deadline_s = deadline_s
        self._runtime = runtime
        self._mapping_scans = 0
        self._values = SessionValues(
            user=session.user,
            catalog=request.catalog,
            namespace=".".join(request.namespace),
            now_us=resources.clock.now_us(),
        )

    async def answer(self, statement: Statement, sink: Sink) -> None:
        """Everything, to the last row."""
        match statement:
            case Query():
                await self._query(statement, sink)
            case Explain():
                await self._explain(statement, sink)
            case Show():
                await self._give(await self._shower().show(statement), sink)
            case Describe(query=Query() as query):
                await self._describe_query(query, sink)
            case Describe():
                found = await self._shower().describe(statement)
                if isinstance(found, OpenedView):
                    await self._describe_query(
                        select_all((found.name.catalog, *found.name.namespace, found.name.name)), sink
                    )
                else:
                    await self._give(found, sink)

    async def _query(self, query: Query, sink: Sink) -> None:
        ready = await self._prepare(query, sink)
        execution = self._execution(ready.query, ready.choice)

        async def begun(schema: "pa.Schema", choice: Choice) -> None:
            sink.chosen(choice.engine.name, choice.reason, choice.shown)
            sink.begun(schema)

        with span("query.run", engine=ready.choice.engine.name):
            async with aclosing(execution.batches(sink.report, begun)) as batches:
                async for batch in batches:
                    await sink.put(batch)

    async def _explain(self, statement: Explain, sink: Sink) -> None:
        ready = await self._prepare(statement.query, sink)
        lines = explain(ready.bound, ready.planned, ready.choice, self._session.user)
        if statement.is_extended:
            lines += ["bound:", *str(ready.query.tree.sql(dialect=WRITTEN, pretty=True)).splitlines()]
            engine = ready.choice.engine
            if isinstance(engine, Explains):
                lines += ["plan:", *sink.clean_plan(await engine.explain(ready.query)).splitlines()]
        await self._give(lines_table(lines), sink)

    async def _describe_query(self, query: Query, sink: Sink) -> None:
        ready = await self._prepare(query, sink)
        results = await ready.choice.engine.execute(ready.query, sink.report)
        try:
            schema = name_columns(results, ready.query)
        finally:
            await results.close()
        await self._give(columns_table(schema.names, schema), sink)

    async def _give(self, table: "pa.Table", sink: Sink) -> None:
        sink.chosen(ENGINE_OF_COORDINATOR, NOT_AN_ENGINE, NOT_AN_ENGINE)
        sink.begun(table.schema)
        for batch in table.to_batches():
            await sink.put(batch)

    async def _prepare(self, query: Query, sink: Sink) -> Ready:
        """Bind and plan, again when policies or tables change in between."""
        for is_last in (*[False] * (_BINDINGS - 1), True):
            try:
                return await self._prepare_once(query, sink)
            except Conflict:
                if is_last:
                    raise
        raise AssertionError("the last attempt answers or raises")

    async def _prepare_once(self, query: Query, sink: Sink) -> Ready:
        # Binding changes the tree; another attempt needs it as it was written.
        tree = await asyncio.to_thread(query.tree.copy)
        with span("query.bind"):
            bound = await self._binder().bind(tree)
        sink.bound(bound)
        workers = await self._resources.load_workers()
        planner = self._planner(workers or ())
        with span("query.plan", tables=len(bound.sources)):
            planned = await planner.plan(bound, Mappings(self._session, self._make_run(planner)))
        sink.planned(planned)
        ready = self._engine_query(self._id, bound.query.tree, planned, bound.query.columns)
        choice = await self._resources.choose(
            ready, Facts(workers, planned.scans, planned.files, planned.total_bytes)
        )
        return Ready(bound, planned, ready, choice)

    def _engine_query(self, id_: str, tree: Any, planned: Planned, columns: tuple[str, ...]) -> EngineQuery:
        return EngineQuery(id_, tree, planned.relations, columns, self._deadline_s, self._values)

    def _make_run(self, planner: RelationPlanner) -> Any:
        async def run(scan: MappingScan) -> list[Any]:
            """The values of a mapping: read like any table, by whichever engine is there."""
            self._mapping_scans += 1
            relation = planner.plan_mapping(scan, self._mapping_scans)
            planned = Planned((relation,), {}, {}, len(scan.planned.files), relation.total_bytes, 1)
            query = self._engine_query(
                f"{self._id}-m{self._mapping_scans}",
                scan.bound.tree,
                planned,
                scan.bound.columns,
            )
            choice = await self._resources.choose(
                query, Facts(await self._resources.load_workers(), 1, planned.files, planned.total_bytes)
            )
            values: list[Any] = []
            async with aclosing(self._execution(query, choice).batches(_ignore, _begin)) as batches:
                async for batch in batches:
                    values += batch.column(0).to_pylist()
            return values

        return run

    def _execution(self, query: EngineQuery, choice: Choice) -> Execution:
        settings = self._resources.settings
        return Execution(query, choice, local=self._resources.local, fall_back_below=settings.fall_back_below)

    def _binder(self) -> Binder:
        return Binder(
            self._session,
            self._request.catalog,
            self._request.namespace,
            values=self._values,
            runtime=self._runtime,
            thinking=self._resources.thinking,
        )

    def _planner(self, workers: "list[WorkerInfo] | tuple[()]") -> RelationPlanner:
        return RelationPlanner(
            self._session,
            self._resources.settings,
            query_id=self._id,
            salt=secrets.token_bytes(_SALT_BYTES),
            storage=self._resources.storage,
            file_roots=self._resources.file_roots,
            workers=workers,
        )

    def _shower(self) -> Shower:
        return Shower(self._session, self._request.catalog, self._request.namespace, runtime=self._runtime)


async def redact_statement(statement: Statement) -> str:
    """A statement as it is recorded: without constants."""
    match statement:
        case Query(tree):
            return await asyncio.to_thread(redact, tree)
        case Explain(query):
            return f"EXPLAIN {await asyncio.to_thread(redact, query.tree)}"
        case Describe(query=Query(tree)):
            return f"DESCRIBE QUERY {await asyncio.to_thread(redact, tree)}"
        case Show(what, within):
            return f"SHOW {what.upper().replace('-', ' ')} {'.'.join(within)}".strip()
        case Describe(what, name):
            return f"DESCRIBE {what.upper()} {'.'.join(name)}"


async def _begin(schema: "pa.Schema", choice: Choice) -> None:
    """Nor are its columns."""


def _ignore(report: FragmentReport) -> None:
    """Fragments of a mapping are not the user's."""
