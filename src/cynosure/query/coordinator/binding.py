"""Names of a statement opened on behalf of its user: tables at one snapshot each, views down to their tables.

A maintainer must not break: every mention is opened and governed, in views of views too; two mentions of one
table see one snapshot; and a view gives its invoker nothing that the invoker may not see.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.query.catalog_access.port import CatalogSession, OpenedTable, OpenedView, TableName
from cynosure.query.coordinator.at_once import all_of
from cynosure.query.coordinator.inline import InlineTable
from cynosure.query.coordinator.manifest_tables import ManifestTable
from cynosure.query.coordinator.opening import Opener, Runtime
from cynosure.query.coordinator.policies import masked_ids
from cynosure.query.coordinator.thinking import Thinking
from cynosure.query.engine import SessionValues
from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.sql.bind_relations import MAX_VIEW_DEPTH
from cynosure.query.sql.binding import bind_query
from cynosure.query.sql.bound import BoundName, BoundQuery, BoundTable, BoundView, TableMention
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_view

if TYPE_CHECKING:
    from sqlglot import exp

_MOST_MENTIONS: Final = 1_000
_T = TypeVar("_T")


class GovernedTable(Struct, frozen=True):
    """A table that was opened, and its columns."""

    opened: OpenedTable
    schema: Schema
    masked: frozenset[int]


Source = GovernedTable | InlineTable | ManifestTable


class Bound(Struct, frozen=True):
    """A bound query, and what its mentions are."""

    query: BoundQuery
    sources: Mapping[int, Source]
    """By the number of the mention."""
    views: tuple[str, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables and views that it reads, each once."""
        names = [
            str(each.opened.name) if isinstance(each, GovernedTable) else each.shown
            for each in self.sources.values()
        ]
        return tuple(dict.fromkeys((*names, *self.views)))

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of all policies that restrict its user."""
        found = [
            name
            for each in self.sources.values()
            if isinstance(each, GovernedTable)
            for name in each.opened.policies
        ]
        return tuple(dict.fromkeys(found))

    @property
    def is_restricted(self) -> bool:
        """Whether anything of it is hidden from its user."""
        return any(
            isinstance(each, GovernedTable) and each.opened.is_restricted for each in self.sources.values()
        )


class Binder:
    """Binds the query of one statement."""

    def __init__(
        self,
        session: CatalogSession,
        catalog: str,
        namespace: tuple[str, ...],
        *,
        values: SessionValues,
        runtime: Runtime,
        thinking: Thinking,
    ) -> None:
        self._owner = session.owner
        self._thinking = thinking
        self._catalog = catalog
        self._namespace = namespace
        self._values = values
        self._opener = Opener(session, runtime)
        self._sources: dict[int, Source] = {}
        self._tables: dict[int, BoundName] = {}
        self._views: list[str] = []
        self._next = 0

    async def bind(self, tree: "exp.Expression") -> Bound:
        """The query over governed relations. Errors are those of names, rights, policies and SQL."""
        try:
            await self._open_all(tree, self._catalog, self._namespace, ())
        finally:
            await self._opener.close()
        bound = await self._think(partial(bind_query, tree, self._tables, self._values))
        return Bound(bound, self._sources, tuple(dict.fromkeys(self._views)))

    async def _think(self, work: Callable[[], _T]) -> _T:
        return await self._thinking.run(self._owner, work)

    async def _open_all(
        self, tree: "exp.Expression", catalog: str, namespace: tuple[str, ...], inside: tuple[TableName, ...]
    ) -> None:
        mentions = await self._think(partial(mentions_of, tree, self._next, self._values))
        self._next += len(mentions)
        if self._next > _MOST_MENTIONS:
            raise SqlError(
                "The statement names too many tables",
                fix=f"Name at most {_MOST_MENTIONS}, those in views included.",
            )
        opened = await all_of([self._opener.open(each, catalog, namespace) for each in mentions])
        # Order: all names of one level are there before any view is looked into.
        for mention, found in zip(mentions, opened, strict=True):
            if isinstance(found, OpenedView):
                await self._expand(mention, found, inside)
            elif isinstance(found, InlineTable | ManifestTable):
                self._sources[mention.number] = found
                self._tables[mention.number] = BoundTable(found.schema)
            else:
                schema = decode_schema(found.schema)
                masked = masked_ids(found, schema)
                self._sources[mention.number] = GovernedTable(found, schema, masked)
                self._tables[mention.number] = BoundTable(schema, masked)

    async def _expand(self, mention: TableMention, view: OpenedView, inside: tuple[TableName, ...]) -> None:
        if view.name in inside or len(inside) >= MAX_VIEW_DEPTH:
            raise SqlError(
                "The view contains itself, or views are nested too deeply",
                fix="Have its owner correct it.",
                view=str(view.name),
            )
        try:
            tree = await self._think(partial(parse_view, view.sql))
        except SqlError as error:
            raise NotAllowed(
                "The query of a view is not one that governed SQL runs",
                fix=error.fix or "Have its owner correct it.",
                view=str(view.name),
                reason=error.message,
            ) from error
        self._views.append(str(view.name))
        self._tables[mention.number] = BoundView(
            tree=tree,
            columns=view.columns,
            default_catalog=view.default_catalog,
            default_namespace=view.default_namespace,
            shown=str(view.name),
        )
        await self._open_all(tree, view.default_catalog, view.default_namespace, (*inside, view.name))
