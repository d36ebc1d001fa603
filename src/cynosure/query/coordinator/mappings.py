"""Mapping tables of row filters: their values at their current snapshot, read with the gateway's own rights.

A maintainer must not break: a mapping that cannot be read, has too many values or another type hides the
table that asks it. Nothing found is nothing shown.
"""

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any, Final

from cynosure.common.errors import BadInput, Conflict
from cynosure.iceberg.expressions import parse_expression
from cynosure.iceberg.expressions.nodes import Expression
from cynosure.iceberg.restrictions.binding import bind_filter
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.single_value import write_value
from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    Type,
)
from cynosure.query.catalog_access.port import (
    CatalogSession,
    MappingFilter,
    OpenedTable,
    PlannedFiles,
)
from cynosure.query.errors import PolicyHides
from cynosure.query.sql.binding import bind_query
from cynosure.query.sql.bound import BoundQuery, BoundTable
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.statements import Query

MAX_VALUES: Final = 10_000
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_EXACT: Final = frozenset({BOOLEAN, INT, LONG, STRING, DATE, TIMESTAMP, TIMESTAMPTZ, UUID, BINARY})
"""Types whose values are equal in one way only."""


class MappingScan:
    """What an engine is asked for one mapping."""

    def __init__(
        self,
        table: OpenedTable,
        schema: Schema,
        planned: PlannedFiles,
        row_filter: Expression,
        bound: BoundQuery,
    ) -> None:
        self.table = table
        self.schema = schema
        self.planned = planned
        self.row_filter = row_filter
        self.bound = bound


RunScan = Callable[[MappingScan], Awaitable[list[Any]]]
"""Gives the values of the only column, None among them."""


class Mappings:
    """The mappings of one statement; each is read once."""

    def __init__(self, session: CatalogSession, run: RunScan) -> None:
        self._session = session
        self._run = run
        self._known: dict[tuple[MappingFilter, Type], tuple[Any, ...]] = {}
        self._reading = asyncio.Lock()

    async def load(self, mapping: MappingFilter, type_: Type) -> tuple[Any, ...]:
        """JSON values of a mapping for a column of this type."""
        key = (mapping, type_)
        async with self._reading:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = await self._load(mapping, type_)
            return known

    async def _load(self, mapping: MappingFilter, type_: Type) -> tuple[Any, ...]:
        table = await self._session.open_as_gateway(mapping.table)
        schema = decode_schema(table.schema)
        column = _find_column(schema, mapping)
        if column.type != type_ or not (type_ in _EXACT or isinstance(type_, DecimalType | FixedType)):
            raise _hides(
                mapping, "its column has another type than the filtered one, or one that is not exact"
            )
        try:
            row_filter = bind_filter(parse_expression(mapping.filter), schema, field="filter").expression
        except BadInput as error:
            raise _hides(mapping, "its condition does not fit the mapping table") from error
        name = column.name.replace("`", "``")
        sql = f"SELECT DISTINCT `{name}` FROM mapping LIMIT {MAX_VALUES + 1}"  # noqa: S608 - quoted just above
        statement = parse_statement(sql)
        if not isinstance(statement, Query):
            raise TypeError("a SELECT is a query")
        [mention] = mentions_of(statement.tree)
        bound = bind_query(statement.tree, {mention.number: BoundTable(schema)})
        try:
            planned = await self._session.plan_as_gateway(table, (column.id,), row_filter)
        except Conflict as error:
            raise _hides(mapping, "the mapping table changed while it was read") from error
        values = await self._run(MappingScan(table, schema, planned, row_filter, bound))
        if len(values) > MAX_VALUES:
            raise _hides(mapping, f"it has more than {MAX_VALUES} values")
        # NULL equals nothing.
        return tuple(_write(type_, each) for each in values if each is not None)


def _find_column(schema: Schema, mapping: MappingFilter) -> NestedField:
    wanted = mapping.value_column.lower()
    found = [each for each in schema.fields if each.name.lower() == wanted]
    if len(found) != 1:
        raise _hides(mapping, "the mapping table has no such column")
    return found[0]


def _write(type_: Type, value: Any) -> Any:
    """A value that Arrow gave, as JSON."""
    if type_ == DATE and isinstance(value, datetime.date):
        return write_value(type_, value.toordinal() - _EPOCH)
    if isinstance(value, datetime.datetime):
        start = datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo)
        return write_value(type_, (value - start) // datetime.timedelta(microseconds=1))
    if isinstance(type_, DecimalType):
        return write_value(type_, Decimal(value))
    return write_value(type_, value)


def _hides(mapping: MappingFilter, why: str) -> PolicyHides:
    return PolicyHides(
        "A policy that asks a mapping table cannot be applied, so the table is hidden",
        fix=f"Have the policy or the mapping table corrected: {why}.",
        policies=mapping.policy,
        mapping=str(mapping.table),
    )
