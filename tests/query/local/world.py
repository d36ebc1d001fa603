"""Arrow tables as relations, statements over them in the local engine and in Spark."""

import asyncio
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from cynosure.common.clock import SystemClock
from cynosure.iceberg import types as iceberg
from cynosure.iceberg.schema import Schema
from cynosure.query.engine import EngineQuery, FragmentReport, Relation, RelationColumn, SessionValues
from cynosure.query.local.engine import LocalEngine
from cynosure.query.scan_task import InlineTask
from cynosure.query.settings import QuerySettings
from cynosure.query.sql.binding import bind_query
from cynosure.query.sql.bound import BoundQuery, BoundTable, MentionNeed
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.statements import Query

Tables = Mapping[str, pa.Table]
SESSION = SessionValues(user="ann", catalog="lake", namespace="sales", now_us=1_700_000_000_123_456)
_numbers = itertools.count()

_PLAIN = {
    pa.bool_(): iceberg.BOOLEAN,
    pa.int32(): iceberg.INT,
    pa.int64(): iceberg.LONG,
    pa.float32(): iceberg.FLOAT,
    pa.float64(): iceberg.DOUBLE,
    pa.string(): iceberg.STRING,
    pa.binary(): iceberg.BINARY,
    pa.date32(): iceberg.DATE,
    pa.timestamp("us"): iceberg.TIMESTAMP,
    pa.timestamp("us", tz="UTC"): iceberg.TIMESTAMPTZ,
}


def iceberg_type(type_: pa.DataType) -> iceberg.Type:
    """The Iceberg type that gives this Arrow type."""
    if pa.types.is_decimal(type_):
        return iceberg.DecimalType(type_.precision, type_.scale)
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return iceberg.StructType(
            tuple(
                iceberg.NestedField(100 + i, each.name, iceberg_type(each.type), is_required=False)
                for i, each in enumerate(fields)
            )
        )
    if pa.types.is_list(type_):
        return iceberg.ListType(200, iceberg_type(type_.value_type), is_element_required=False)
    return _PLAIN[type_]


def to_ipc(table: pa.Table) -> bytes:
    """As an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10_000)
    return sink.getvalue().to_pybytes()


def bind_text(sql: str, tables: Tables) -> BoundQuery:
    """Read and bound as statements of users are."""
    statement = parse_statement(sql)
    assert isinstance(statement, Query)
    mentions = mentions_of(statement.tree)
    return bind_query(
        statement.tree,
        {each.number: BoundTable(_schema_of(tables[each.parts[-1].lower()])) for each in mentions},
        SESSION,
    )


def fields_of(need: MentionNeed, tables: Tables) -> list[iceberg.NestedField]:
    """What a mention needs of its table."""
    schema = _schema_of(tables[need.mention.parts[-1].lower()])
    return [schema.places[each].field for each in need.columns]


def make_query(sql: str, tables: Tables, *, deadline_s: float | None = None) -> EngineQuery:
    """A bound statement; the rows are in memory."""
    bound = bind_text(sql, tables)
    relations = []
    for need in bound.needs:
        table = tables[need.mention.parts[-1].lower()]
        fields = fields_of(need, tables)
        relations.append(_relation(need.view, table, [(each.name, each.type) for each in fields]))
    return EngineQuery(
        id=f"q{next(_numbers)}",
        tree=bound.tree,
        relations=tuple(relations),
        columns=bound.columns,
        deadline_s=deadline_s if deadline_s is not None else SystemClock().monotonic_s() + 100,
        session=SESSION,
    )


def _schema_of(table: pa.Table) -> Schema:
    fields = tuple(
        iceberg.NestedField(number, each.name, iceberg_type(each.type), is_required=False)
        for number, each in enumerate(table.schema, 1)
    )
    return Schema(0, fields)


def _relation(view: str, table: pa.Table, columns: list[tuple[str, iceberg.Type]]) -> Relation:
    if columns:
        parts = table.select([name for name, _ in columns])
    else:
        parts = pa.table({"cyn_row": pa.nulls(table.num_rows, pa.int8())})
    half = (table.num_rows + 1) // 2
    fragments = tuple(
        InlineTask("q", f"{view}-{i}", to_ipc(parts.slice(i * half, half)))
        for i in range(2 if table.num_rows > 1 else 1)
    )
    return Relation(view, "a table", tuple(RelationColumn(name, type_) for name, type_ in columns), fragments)


def make_engine(spill_dir: Path, **settings: Any) -> LocalEngine:
    """A local engine."""
    return LocalEngine(QuerySettings(**settings), spill_dir=spill_dir, clock=SystemClock())


async def collect(
    engine: LocalEngine, query: EngineQuery, reports: list[FragmentReport] | None = None
) -> pa.Table:
    """All rows; fails when the query is outside of the subset."""
    reason = engine.find_reason_against(query)
    assert reason is None, reason
    results = await engine.execute(query, (reports if reports is not None else []).append)
    batches = [each async for each in results.batches()]
    return pa.Table.from_batches(batches, results.schema)


def run(engine: LocalEngine, sql: str, tables: Tables) -> pa.Table:
    """`collect` of a text."""
    return asyncio.run(collect(engine, make_query(sql, tables)))
