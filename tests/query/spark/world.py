"""Relations and statements for the Spark engine: rows that the coordinator has itself, given out by a real
broker to real workers, so that engine, driver, leaf and stream are those of the product."""

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import parse_one

from cynosure.common.clock import SystemClock
from cynosure.iceberg.types import Type
from cynosure.query.arrow_types import to_arrow
from cynosure.query.engine import (
    EngineQuery,
    FragmentReport,
    Relation,
    RelationColumn,
    Results,
    SessionValues,
)
from cynosure.query.scan_task import InlineTask
from cynosure.query.spark.engine import SparkEngine
from tests.delegation.spark.world import Loop

CLOCK = SystemClock()
Columns = dict[str, Type]


def relation(view: str, columns: Columns, *fragments: Sequence[dict[str, Any]] | pa.Table) -> Relation:
    """A relation with these rows in each of its fragments."""
    schema = pa.schema([pa.field(name, to_arrow(type_)) for name, type_ in columns.items()])
    tasks = []
    for rows in fragments:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=schema)
        tasks.append(InlineTask("", f"{view}-{uuid.uuid4().hex}", to_stream(table)))
    return Relation(
        view, f"c.ns.{view}", tuple(RelationColumn(*each) for each in columns.items()), tuple(tasks)
    )


def counted(view: str, *counts: int) -> Relation:
    """A relation without columns."""
    batches = [
        pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([]))) for count in counts if count
    ]
    tasks = [
        InlineTask("", f"{view}-{uuid.uuid4().hex}", to_stream(pa.Table.from_batches([each])))
        for each in batches
    ]
    return Relation(view, f"c.ns.{view}", (), tuple(tasks))


def to_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def statement(
    sql: str, *relations: Relation, columns: Sequence[str] = ("a",), timeout_s: float = 100.0
) -> EngineQuery:
    return EngineQuery(
        uuid.uuid4().hex,
        parse_one(sql, dialect="spark"),
        relations,
        tuple(columns),
        CLOCK.monotonic_s() + timeout_s,
        SessionValues("anna", "c", "ns", CLOCK.now_us()),
    )


class Sparks:
    """The engine, asked from tests that are not asynchronous."""

    def __init__(self, loop: Loop, engine: SparkEngine) -> None:
        self.loop = loop
        self.engine = engine

    def table(
        self,
        sql: str,
        *relations: Relation,
        columns: Sequence[str] = ("a",),
        reports: list[FragmentReport] | None = None,
        timeout_s: float = 100.0,
    ) -> pa.Table:
        """All rows of a statement."""
        query = statement(sql, *relations, columns=columns, timeout_s=timeout_s)

        async def run() -> pa.Table:
            results = await self.engine.execute(query, (reports if reports is not None else []).append)
            return pa.Table.from_batches([each async for each in results.batches()], results.schema)

        return self.loop.run(run())

    def rows(self, sql: str, *relations: Relation, columns: Sequence[str] = ("a",)) -> list[tuple[Any, ...]]:
        table = self.table(sql, *relations, columns=columns)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


async def first(results: Results) -> pa.RecordBatch:
    async for batch in results.batches():
        return batch
    raise AssertionError("no rows")
