"""What a bound query reads, ready for an engine: one relation per mention, planned and split.

A maintainer must not break: the row filter and the masks of a relation are those that the very plan of its
files was made under. What chooses an engine or a join (files, bytes, rows of a relation) does not depend on
what a statement asks of a table with restrictions: statistics of files count hidden rows too, so whoever sees
which predicate leaves no file reads hidden values by halving.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Expression
from cynosure.iceberg.schema import Schema
from cynosure.query.arrow_types import find_unsupported
from cynosure.query.catalog_access.port import CatalogSession, OpenedTable, PlannedFiles
from cynosure.query.coordinator import policies
from cynosure.query.coordinator.at_once import all_of
from cynosure.query.coordinator.binding import Bound, GovernedTable
from cynosure.query.coordinator.fragments import make_fragments
from cynosure.query.coordinator.inline import InlineTable
from cynosure.query.coordinator.manifest_tables import ManifestTable
from cynosure.query.coordinator.mappings import Mappings, MappingScan
from cynosure.query.engine import Relation, RelationColumn, TableRead, WorkerInfo
from cynosure.query.errors import NotAllowed
from cynosure.query.scan_task import InlineTask, ScanTask
from cynosure.query.settings import QuerySettings
from cynosure.query.sql.bound import MentionNeed

_AT_ONCE: Final = 8


class Planned(Struct, frozen=True):
    """The relations of a query."""

    relations: tuple[Relation, ...]
    filters: dict[int, Expression]
    """Resolved row filters by the number of the mention, for EXPLAIN."""
    pushed: dict[int, Expression]
    """Likewise, what of the statement decides what is read."""
    files: int
    total_bytes: int
    scans: int
    read_bytes: int = 0
    """Of the files that are read: for the record only, never for the user."""


class _Scanned(Struct, frozen=True):
    """A relation, how many files it counts as, and how many bytes are read for it."""

    relation: Relation
    files: int
    read_bytes: int


class RelationPlanner:
    """Plans the relations of one statement."""

    def __init__(
        self,
        session: CatalogSession,
        settings: QuerySettings,
        *,
        query_id: str,
        salt: bytes,
        storage: dict[str, Any],
        file_roots: tuple[str, ...],
        workers: Sequence[WorkerInfo],
    ) -> None:
        self._session = session
        self._settings = settings
        self._query_id = query_id
        self._salt = salt
        self._storage = storage
        self._file_roots = file_roots
        self._workers = workers
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def plan(self, bound: Bound, mappings: Mappings) -> Planned:
        """All relations of a bound query."""
        filters: dict[int, Expression] = {}
        pushed: dict[int, Expression] = {}
        needs = bound.query.needs

        async def one(need: MentionNeed) -> _Scanned:
            source = bound.sources[need.mention.number]
            if isinstance(source, InlineTable):
                return _Scanned(self._inline(need, source), 0, 0)
            if isinstance(source, ManifestTable):
                async with self._turns:
                    return _Scanned(await self._metadata(need, source), 0, 0)
            row_filter = filters[need.mention.number] = await self._resolve(source, mappings)
            need = replace(need, predicates=self._choose_pushed(need, row_filter))
            pushed[need.mention.number] = need.predicates
            async with self._turns:
                return await self._scan(need, source, row_filter)

        scanned = await all_of([one(each) for each in needs])
        relations = tuple(each.relation for each in scanned)
        scans = [each for each in relations if each.table is not None]
        return Planned(
            relations=relations,
            filters=filters,
            pushed=pushed,
            files=sum(each.files for each in scanned),
            total_bytes=sum(each.total_bytes for each in scans),
            scans=len(scans),
            read_bytes=sum(each.read_bytes for each in scanned),
        )

    def plan_mapping(self, scan: MappingScan, number: int) -> Relation:
        """The relation of a mapping table, read with the gateway's own rights."""
        [need] = scan.bound.needs
        return self._relation(
            need,
            scan.table,
            scan.schema,
            scan.planned,
            scan.row_filter,
            scan.planned,
            fragment_id=f"m{number}",
        )

    async def _resolve(self, source: GovernedTable, mappings: Mappings) -> Expression:
        table = source.opened
        values: dict[tuple[int, int], Sequence[Any]] = {}
        for mapping, field_id in policies.find_mappings(table):
            type_ = source.schema.find_type(field_id)
            if type_ is None:
                raise policies.hiding(table)
            values[mapping, field_id] = await mappings.load(table.row_filter.mappings[mapping], type_)
        return policies.resolve_filter(table, source.schema, values)

    def _choose_pushed(self, need: MentionNeed, row_filter: Expression) -> Expression:
        is_pushed = row_filter == TRUE or self._settings.skip_below_filters
        return policies.passable(need.predicates) if is_pushed else TRUE

    async def _scan(self, need: MentionNeed, source: GovernedTable, row_filter: Expression) -> _Scanned:
        table = source.opened
        prunable = policies.passable(policies.prunable(row_filter, source.masked, source.schema))
        wanted = policies.both(prunable, need.predicates)
        if table.is_restricted and need.predicates != TRUE:
            # What is told of the table, its size or that a file of it cannot be read, must not depend on
            # which files the user's predicates leave: hidden rows decide about that, too.
            planned, sized = await all_of(
                [
                    self._session.plan(table, need.columns, wanted),
                    self._session.plan(table, need.columns, prunable),
                ]
            )
        else:
            planned = sized = await self._session.plan(table, need.columns, wanted)
        relation = self._relation(
            need, table, source.schema, planned, row_filter, sized, fragment_id=str(need.mention.number)
        )
        if _is_counted(need, row_filter, planned):
            # No file is opened, so none is a reason to distribute.
            return _Scanned(replace(relation, total_bytes=0), 0, 0)
        return _Scanned(relation, len({each.path for each in sized.files}), planned.total_bytes)

    def _relation(
        self,
        need: MentionNeed,
        table: OpenedTable,
        schema: Schema,
        planned: PlannedFiles,
        row_filter: Expression,
        sized: PlannedFiles,
        *,
        fragment_id: str,
    ) -> Relation:
        columns = tuple(_column(schema, id_, str(table.name)) for id_ in need.columns)
        row_filter_json = policies.encode(row_filter)
        predicates = policies.encode(need.predicates)
        base = ScanTask(
            query_id=self._query_id,
            fragment_id=fragment_id,
            files=(),
            deletes=(),
            schema=table.schema,
            columns=need.columns,
            places=tuple(dict.fromkeys((*table.places, *planned.places))),
            row_filter=row_filter_json,
            masks=table.masks,
            predicates=predicates,
            name_mapping=table.name_mapping,
            salt=self._salt,
            credentials=planned.credentials,
            file_roots=self._file_roots,
            memory_limit_bytes=self._settings.memory_limit,
            storage=self._storage,
        )
        fragments = make_fragments(
            base,
            planned,
            split_size=self._settings.spark.split_size,
            workers=self._workers,
            may_split=not _is_counted(need, row_filter, planned),
        )
        return Relation(
            view=need.view,
            shown=str(table.name),
            columns=columns,
            fragments=fragments,
            total_bytes=sized.total_bytes,
            most_rows=sum(each.record_count for each in sized.files),
            table=TableRead(
                catalog=table.name.catalog,
                namespace=table.name.namespace,
                name=table.name.name,
                snapshot_id=table.snapshot_id,
                is_current_schema=table.is_current_schema,
                row_filter=row_filter_json,
                masks=table.masks,
                predicates=predicates,
                salt=self._salt,
                metadata=table.metadata,
            ),
            renew=planned.renew,
        )

    async def _metadata(self, need: MentionNeed, source: ManifestTable) -> Relation:
        table = source.table
        columns = tuple(_column(source.schema, id_, source.shown) for id_ in need.columns)
        if source.read is None:
            return Relation(need.view, source.shown, columns, ())
        # Of no file: credentials are what is wanted, and whether the user is still shown everything.
        planned = await self._session.plan(table, (), FALSE)
        task = ScanTask(
            query_id=self._query_id,
            fragment_id=f"{need.mention.number}-0",
            files=(),
            deletes=(),
            schema=source.json,
            columns=need.columns,
            places=tuple(dict.fromkeys((*table.places, *planned.places))),
            credentials=planned.credentials,
            file_roots=self._file_roots,
            memory_limit_bytes=self._settings.memory_limit,
            storage=self._storage,
            metadata=source.read,
        )
        return Relation(need.view, source.shown, columns, (task,), renew=planned.renew)

    def _inline(self, need: MentionNeed, source: InlineTable) -> Relation:
        columns = tuple(_column(source.schema, id_, source.shown) for id_ in need.columns)
        task = InlineTask(self._query_id, f"{need.mention.number}-0", source.encode(need.columns))
        return Relation(need.view, source.shown, columns, (task,))


def _is_counted(need: MentionNeed, row_filter: Expression, planned: PlannedFiles) -> bool:
    """Whether rows are only counted, and nothing hides any: that comes from the metadata of whole files."""
    return not need.columns and row_filter == TRUE and need.predicates == TRUE and not planned.deletes


def _column(schema: Schema, field_id: int, table: str) -> RelationColumn:
    field = schema.places[field_id].field
    if (unsupported := find_unsupported(field.type)) is not None:
        raise NotAllowed(
            "A column is of a type that governed SQL does not read",
            fix="Leave the column out of the statement.",
            table=table,
            column_name=field.name,
            type=unsupported,
        )
    # A mask may make any column null.
    return RelationColumn(field.name, field.type, is_required=False)
