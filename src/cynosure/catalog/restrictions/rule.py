"""The rule: whoever may not see all of a table gets no more of it than the restrictions leave.

Must not break: an answer rests on the state it was made on and on the realm's principals; the heads of these
are among the guards, so that a commit is decided again when one of them has moved.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from cynosure.auth.caller import MAPPING_FILTERS, POLICY_NAMES, Caller
from cynosure.auth.ports import Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.standing import Standings
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.managed.answer import Snapshots, TableAnswer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, path_of
from cynosure.catalog.policies.attached import Attached, load_attached, load_attached_to
from cynosure.catalog.resolve import find_namespace
from cynosure.catalog.restrictions.answering import RestrictedAnswers
from cynosure.catalog.restrictions.anywhere import load_restrictions_anywhere
from cynosure.catalog.restrictions.changing import check_columns, is_about_columns
from cynosure.catalog.restrictions.doors import Door, door_of
from cynosure.catalog.restrictions.effective import DoesNotFit, RecentlyEffective
from cynosure.catalog.restrictions.in_force import (
    InEffect,
    find_in_force,
    is_restricted_by,
    restricting,
    roles_of,
)
from cynosure.catalog.restrictions.readers import load_asking
from cynosure.catalog.restrictions.types import OURS, ensure_parser, find_mapping_table
from cynosure.catalog.targets import (
    AnyTableTarget,
    CatalogTarget,
    GenericTableTarget,
    NamespaceTarget,
    TableTarget,
)
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.restrictions.wire import ReadRestrictions
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import ObjId

TableLike = TableTarget | GenericTableTarget | AnyTableTarget


class Asked(NamedTuple):
    """An operation of somebody, for refusals."""

    caller: Caller
    operation: Operation
    targets: tuple[Target, ...]


class Restrictions:
    """Of all catalogs of a process: what is remembered is remembered by ids that no two of them share."""

    def __init__(self, persistence: Persistence, tables: RecentTables) -> None:
        self._persistence = persistence
        self._tables = tables
        self._standings = Standings(persistence)
        self._answers = RestrictedAnswers()
        self._effective = RecentlyEffective()

    async def check(
        self, view: View, caller: Caller, operation: Operation, targets: tuple[Target, ...]
    ) -> Guards:
        """Refuse what a restricted principal may not do; what it rests on that it may be done."""
        door = door_of(operation)
        if door is Door.HARMLESS or caller.is_operator:
            return {}
        asked = Asked(caller, operation, targets)
        if door is Door.UNCHECKED:
            return await self._check_anywhere(view, asked)
        guards = [
            await self._check_table(view, asked, door, each)
            for each in targets
            if isinstance(each, TableTarget | GenericTableTarget | AnyTableTarget)
        ]
        return join_guards(*guards) if guards else {}

    async def check_again(self, now: View, asked: Asked, target: TableTarget, table_id: ObjId) -> None:
        """Refuse to tell somebody again what it was told of a table, if it is restricted on it by now.

        `target` is where the table was when that was asked for. It may have been moved or dropped since, and
        another one may be there.
        """
        door = door_of(asked.operation)
        if door is Door.HARMLESS or asked.caller.is_operator:
            return
        if door is Door.UNCHECKED:
            await self._check_anywhere(now, asked)
            return
        key = await now.find("ids", encode_id_key(table_id))
        if key is not None:
            *namespace, name = path_of(key)
            there = TableTarget(target.catalog, Identifier(tuple(namespace), name))
            await self._check_table(now, asked, door, there)
            return
        attached = await _load_left(now, target, table_id)
        if attached:
            asking = await load_asking(self._persistence, self._standings, asked.caller, roles_of(attached))
            in_force = find_in_force(attached, asking)
            if in_force is not None:
                raise _refusal(asked, in_force)

    async def has_any(self, view: View, target: TableLike) -> bool:
        """Whether there is anybody who may not see all of a table."""
        return bool(restricting(await load_attached(view, target)))

    async def has_own(self, view: View, target: TableTarget) -> bool:
        """Whether some of that is attached to the table itself, and so would not be found on another."""
        attached = restricting(await load_attached(view, target))
        return any(each.on_kind == target.kind for each in attached)

    async def find(self, view: View, caller: Caller, target: TableLike) -> InEffect | None:
        """The policies that restrict the caller on the way to a table, whatever its columns are."""
        if caller.is_operator:
            return None
        attached = await _load_restricting(view, target)
        if not attached:
            return None
        asking = await load_asking(self._persistence, self._standings, caller, roles_of(attached))
        in_force = find_in_force(attached, asking)
        return None if in_force is None else await self._load_mapping_tables(view, in_force)

    def answer(
        self, in_force: InEffect, asked: Asked, table: ManagedTable, snapshots: Snapshots
    ) -> TableAnswer | None:
        """What the caller is told about a table; `None` when nothing of it is restricted.

        `RestrictedByPolicy` when a policy does not fit the table, and so hides it.
        """
        found = self._require_fitting(asked, in_force, table)
        return None if found is None else self._answers.get(table, snapshots, tell(in_force, found))

    def effective(self, in_force: InEffect, asked: Asked, table: ManagedTable) -> ReadRestrictions | None:
        """What a reader of this version has to apply; otherwise as `answer`."""
        return self._require_fitting(asked, in_force, table)

    async def check_answer(self, view: View, asked: Asked, target: TableTarget) -> None:
        """Refuse what `answer` would refuse: a table that is hidden altogether from the caller."""
        in_force = await self.find(view, asked.caller, target)
        table = None if in_force is None else await self._find_table(view, target)
        if in_force is not None and table is not None:
            self._require_fitting(asked, in_force, table)

    async def check_schema_change(
        self, view: View, target: TableTarget, before: TableMetadata, after: TableMetadata
    ) -> None:
        """Refuse a change of columns that would take a restriction from what it is about."""
        if is_about_columns(before, after):
            check_columns(await _load_restricting(view, target), before, after)

    async def _check_table(self, view: View, asked: Asked, door: Door, target: TableLike) -> Guards:
        attached = await _load_restricting(view, target)
        if not attached:
            return {}
        asking = await load_asking(self._persistence, self._standings, asked.caller, roles_of(attached))
        in_force = find_in_force(attached, asking)
        if in_force is None:
            return asking.guards
        is_for_engine = door is Door.FILES and asking.is_trusted_engine
        # Most are refused whatever the columns are.
        is_decided = in_force.is_certain and not is_for_engine
        if is_decided:
            raise _refusal(asked, in_force)
        in_force = await self._load_mapping_tables(view, in_force)
        table = await self._find_table(view, target)
        if table is not None and (self._require_fitting(asked, in_force, table) is None or is_for_engine):
            return asking.guards
        raise _refusal(asked, in_force)

    async def _check_anywhere(self, view: View, asked: Asked) -> Guards:
        restrictions = await load_restrictions_anywhere(view)
        if not restrictions:
            return {}
        asking = await load_asking(self._persistence, self._standings, asked.caller, roles_of(restrictions))
        paths = [each.path for each in restrictions if is_restricted_by(each.policy, asking)]
        if paths:
            raise _refuse_for(asked, paths)
        return asking.guards

    def _require_fitting(
        self, asked: Asked, in_force: InEffect, table: ManagedTable
    ) -> ReadRestrictions | None:
        found = self._effective.get(in_force, table)
        if isinstance(found, DoesNotFit):
            raise RestrictedByPolicy(
                *asked,
                policies=(str(found.policy),),
                reason=f"Have policy {found.policy} or the table corrected: {found.why}.",
            )
        if found is not None and found.has_mappings and MAPPING_FILTERS not in in_force.asking.capabilities:
            raise _refuse_for(asked, found.policies, reader=_GATEWAY)
        return found

    async def _load_mapping_tables(self, view: View, in_force: InEffect) -> InEffect:
        """With the mapping tables that its filters ask, as they are in this state."""
        found: dict[tuple[str, ...], ManagedTable | None] = {}
        for each in in_force.filters:
            mapped = each.mapped
            if mapped is not None:
                found[mapped.table] = await find_mapping_table(view, mapped, self._tables)
        return in_force._replace(mapping_tables=found) if found else in_force

    async def _find_table(self, view: View, target: TableLike) -> ManagedTable | None:
        if not isinstance(target, TableTarget):
            # What cannot be filtered is not shown at all.
            return None
        ref = await target.locate(view)
        # Of a table that is not imported the columns are not known yet.
        return None if ref.type == POINTER.name else await load_table_at(view, ref.id, self._tables)


async def _load_restricting(view: View, target: TableLike) -> list[Attached]:
    """The policies on the way to a table that restrict anyone."""
    attached = [each for each in await load_attached(view, target) if each.policy.type.startswith(OURS)]
    if attached:
        await ensure_parser()
    return restricting(attached)


async def _load_left(view: View, target: TableTarget, table_id: ObjId) -> list[Attached]:
    """The policies that restrict anyone on a table that is gone, and on what is left of the way to it."""
    own = await load_attached_to(view, table_id, (target.kind, target.name))
    above: CatalogTarget | NamespaceTarget = CatalogTarget(target.catalog, "")
    for depth in range(len(target.parent), 0, -1):
        if await find_namespace(view, target.parent[:depth]) is not None:
            above = NamespaceTarget(target.catalog, target.parent[:depth])
            break
    attached = [*await load_attached(view, above), *own]
    ours = [each for each in attached if each.policy.type.startswith(OURS)]
    if ours:
        await ensure_parser()
    return restricting(ours)


def tell(in_force: InEffect, found: ReadRestrictions) -> bytes:
    """Restrictions as JSON, with as much as the engine knows."""
    return found.json_with_policies if POLICY_NAMES in in_force.asking.capabilities else found.json


_ENGINE: Final = "a trusted engine"
_GATEWAY: Final = "the SQL gateway"
"""No other reader looks up what a mapping table says."""


def _refusal(asked: Asked, in_force: InEffect) -> RestrictedByPolicy:
    paths = (each.path for each in in_force.policies)
    return _refuse_for(asked, paths, reader=_GATEWAY if in_force.has_mappings else _ENGINE)


def _refuse_for(
    asked: Asked, policies: Iterable[Identifier | str], *, reader: str = _ENGINE
) -> RestrictedByPolicy:
    names = tuple(dict.fromkeys(str(each) for each in policies))
    return RestrictedByPolicy(
        *asked,
        policies=names,
        reason=f"Read it through {reader}: policy {names[0]} restricts what this principal sees.",
    )
