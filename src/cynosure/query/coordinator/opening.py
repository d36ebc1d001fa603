"""Names of a statement opened on behalf of its user: tables, views, metadata tables, the gateway's own.

    system.runtime.queries       of the gateway
    t, n.t, c.n.t                what the catalog has by that name
    t.branch_x, t.tag_x …        if there is no table of that name: a version of t
    t.snapshots …                likewise: metadata of t, for users whom no policy restricts on it

A maintainer must not break: a name means the same in a query, in DESCRIBE and in SHOW. Everything is asked
with the user's rights, and one name at one version once in a statement.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from cynosure.query.catalog_access.port import CatalogSession, OpenedTable, OpenedView, TableName
from cynosure.query.coordinator.inline import InlineTable
from cynosure.query.coordinator.manifest_tables import ManifestTable
from cynosure.query.coordinator.metadata_tables import is_metadata_table, open_metadata_table
from cynosure.query.coordinator.names import candidates
from cynosure.query.errors import NoSuchRelation, SqlError
from cynosure.query.sql.bound import TableMention, TimeTravel

RUNTIME: Final = ("system", "runtime")
_SELECTORS: Final = ("branch_", "tag_", "snapshot_id_", "at_timestamp_")

Runtime = Callable[[str], InlineTable | None]
"""A table of `system.runtime` as the user sees it."""
Readable = OpenedTable | InlineTable | ManifestTable
"""What has rows of its own."""
Found = Readable | OpenedView


class Opener:
    """Opens the names of one statement. `close` it: a failure leaves questions behind."""

    def __init__(self, session: CatalogSession, runtime: Runtime) -> None:
        self._session = session
        self._runtime = runtime
        self._opening: dict[tuple[TableName, TimeTravel | None], asyncio.Task[OpenedTable | OpenedView]] = {}

    async def open(self, mention: TableMention, catalog: str, namespace: tuple[str, ...]) -> Found:
        """What a name stands for. `NoSuchRelation` if that is nothing, or not the user's to see."""
        parts = mention.parts
        if is_runtime(parts[:-1]):
            found = self._runtime(parts[-1].lower())
            if found is None:
                raise _no_such(mention)
            return found
        try:
            return await self._open_first(mention, candidates(parts, catalog, namespace), mention.travel)
        except NoSuchRelation as error:
            if len(parts) < 2 or not (is_metadata_table(parts[-1]) or _selects(parts[-1])):
                raise
            missing = error
        try:
            table = await self._open_first(
                mention, candidates(parts[:-1], catalog, namespace), _travel_of(mention, parts[-1])
            )
        except NoSuchRelation:
            raise missing from None
        if _selects(parts[-1]):
            return table
        if isinstance(table, OpenedView):
            raise missing
        return open_metadata_table(table, parts[-1])

    async def close(self) -> None:
        """Nothing goes on being asked."""
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)

    async def _open_first(
        self, mention: TableMention, names: tuple[TableName, ...], travel: TimeTravel | None
    ) -> OpenedTable | OpenedView:
        for name in names:
            try:
                return await self._open_once(name, travel)
            except NoSuchRelation:
                continue
        raise _no_such(mention)

    async def _open_once(self, name: TableName, travel: TimeTravel | None) -> OpenedTable | OpenedView:
        """A table or view; the same answer for every mention of it."""
        key = (name, travel)
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = asyncio.create_task(self._session.open_name(name, travel))
        # Whoever waits may be cancelled by another mention's failure; the answer is for all of them.
        return await asyncio.shield(task)


def is_runtime(namespace: tuple[str, ...]) -> bool:
    """Whether a namespace is that of the gateway's own tables."""
    return tuple(each.lower() for each in namespace) == RUNTIME


def _selects(part: str) -> bool:
    return part.startswith(_SELECTORS)


def _travel_of(mention: TableMention, part: str) -> TimeTravel | None:
    if not _selects(part):
        return mention.travel
    if mention.travel is not None:
        raise SqlError(
            "A table is read at one version",
            fix="Name the version once.",
            line=mention.line,
            column=mention.column,
        )
    for prefix in _SELECTORS[:2]:
        if part.startswith(prefix):
            return TimeTravel(version=part.removeprefix(prefix))
    number = part.rpartition("_")[2]
    if not (number.isascii() and number.isdecimal() and len(number) <= 19):
        raise _no_such(mention)
    if part.startswith("snapshot_id_"):
        return TimeTravel(version=int(number))
    return TimeTravel(timestamp_us=int(number) * 1000)


def _no_such(mention: TableMention) -> NoSuchRelation:
    return NoSuchRelation(
        "No such table or view, or it is not yours to see",
        fix="Check its name with SHOW TABLES, and your privileges.",
        line=mention.line,
        column=mention.column,
        name=".".join(mention.parts),
    )
