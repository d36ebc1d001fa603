"""The internal authorizer: decides by what is granted to the roles of the caller.

A privilege is met when it, or one that includes it, is held anywhere on the way to the target:

    realm ─► catalog ─► namespace ─► … ─► table        held by an active role on any of these: met

The way is walked only until all needs are met, so a caller with rights on the catalog never makes a name be
looked up. All needs of all targets must be met.

Must not break: enforcement and explanation are this one code; an explanation only keeps notes on the way.
Whatever is not found to be granted is refused.
"""

from collections.abc import AsyncIterator, Sequence
from types import AsyncGeneratorType
from typing import NamedTuple

from cynosure.auth.access.reach import Reach, Reaches
from cynosure.auth.access.rules import NOBODY, OPERATOR, Ruling, find_lock, find_ruling
from cynosure.auth.access.visible import EVERYTHING, NOTHING, Visible
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Decision, GrantStep, Missing, Target
from cynosure.auth.rbac.grants import THE_CATALOG, unpack_privileges
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.rbac.privileges import SATISFIED_BY, Privilege, PrivilegeSet, members
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standing, Standings
from cynosure.persistence.commit import View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import CatalogId, ObjId, RefKey

Needs = Sequence[tuple[Privilege, PrivilegeSet]]
_DEFAULTS = AuthSettings()


class _Met(NamedTuple):
    """A note for an explanation: where a need was found to be met."""

    need: Privilege
    by: PrivilegeSet
    target: Target
    on: tuple[str, str]
    """Kind and name of the place."""
    reach: Reach | None
    """`None`: the realm itself."""
    securable: ObjId


Notes = list[_Met]


class InternalAuthorizer:
    """Role-based access control from the store's own principals, roles and grants."""

    def __init__(
        self, persistence: Persistence, standings: Standings, settings: AuthSettings = _DEFAULTS
    ) -> None:
        self._standings = standings
        self._reaches = Reaches(persistence)
        self._settings = settings

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        """See `Authorizer.decide`."""
        needs_of = _pair(operation, targets)
        if caller.is_operator:
            return _ruled(OPERATOR)
        if caller.identity is None:
            return _ruled(NOBODY)
        standing, key, head = await self._standings.load(caller.realm, caller.identity)
        guards = {key: head}
        ruling = find_ruling(standing, operation, targets, self._settings)
        if ruling is not None:
            return _ruled(ruling, guards)
        # One of each catalog for all targets: a decision that mixed two states could be true in neither.
        reached: dict[CatalogId, Reach] = {}
        notes: Notes | None = [] if explain else None
        missing: list[Missing] = []
        for target, needs in zip(targets, needs_of, strict=True):
            for need, _ in await self._find_unmet(caller, standing, target, needs, view, reached, notes):
                missing.append(Missing(need.name, target.kind, target.name))
        for reach in reached.values():
            guards[reach.key] = reach.head
        path = tuple([await _step(standing, met) for met in notes or ()])
        return Decision(not missing, tuple(missing), path=path, guards=guards)

    async def _find_unmet(
        self,
        caller: Caller,
        standing: Standing,
        target: Target,
        needs: Needs,
        view: View | None,
        reached: dict[CatalogId, Reach],
        notes: Notes | None,
    ) -> Needs:
        """The needs that are met nowhere on the way to the target."""
        left = _still(needs, standing.realm_privileges)
        if notes is not None:
            _note(notes, needs, left, target, ("realm", caller.realm), None, THE_CATALOG)
        if not left or target.catalog is None:
            return left
        reach = reached.get(target.catalog)
        if reach is None:
            reach = reached[target.catalog] = await self._load_reach(caller, standing, target.catalog)
        before, left = left, _still(left, reach.on_catalog)
        if notes is not None:
            name = target.name if target.kind == "catalog" else ""
            _note(notes, before, left, target, ("catalog", name), reach, THE_CATALOG)
        if not left or view is None:
            return left
        depth, steps = 0, target.walk(view)
        try:
            async for securable in steps:
                held = reach.get_held(securable)
                if held is None:
                    held = await reach.load_held(securable)
                if held:
                    before, left = left, _still(left, held)
                    if notes is not None:
                        _note(notes, before, left, target, target.place(depth), reach, securable)
                    if not left:
                        break
                depth += 1
        finally:
            await _end(steps)
        return left

    async def visible(self, caller: Caller, catalog: CatalogId, privilege: Privilege) -> Visible:
        """See `visible.py`."""
        if caller.is_operator:
            return EVERYTHING
        standing = await self._load_unlocked(caller)
        if standing is None:
            return NOTHING
        reach = await self._load_reach(caller, standing, catalog)
        if (standing.realm_privileges | reach.on_catalog) & SATISFIED_BY[privilege]:
            return EVERYTHING
        return Visible(is_everything=False, ids=await reach.load_granted(privilege))

    async def has_catalog_role(self, caller: Caller, catalog: CatalogId) -> bool:
        """See `visible.py`."""
        if caller.is_operator:
            return True
        standing = await self._load_unlocked(caller)
        return standing is not None and bool((await self._load_reach(caller, standing, catalog)).roles)

    async def _load_unlocked(self, caller: Caller) -> Standing | None:
        if caller.identity is None:
            return None
        standing = (await self._standings.load(caller.realm, caller.identity)).standing
        return standing if find_lock(standing, self._settings) is None else None

    async def _load_reach(self, caller: Caller, standing: Standing, catalog: CatalogId) -> Reach:
        return await self._reaches.load(caller.realm, catalog, tuple([role.id for role in standing.roles]))


def _pair(operation: Operation, targets: tuple[Target, ...]) -> tuple[Needs, ...]:
    """The needs of each target. Targets that the operation does not have are a defect, and never allowed."""
    kinds, needs = operation.kinds, operation.met_by
    if len(targets) == 1 == len(kinds) and targets[0].kind == kinds[0]:
        return needs
    if len(targets) != len(kinds):
        if len(kinds) != 1 or not targets:
            raise ValueError(f"{operation.name} has {len(kinds)} targets, not {len(targets)}")
        kinds, needs = kinds * len(targets), needs * len(targets)
    for target, kind in zip(targets, kinds, strict=True):
        if target.kind != kind:
            raise ValueError(f"{operation.name} is done to a {kind}, not to a {target.kind}")
    return needs


def _ruled(ruling: Ruling, guards: dict[RefKey, ObjId] | None = None) -> Decision:
    return Decision(ruling.is_allowed, reason=ruling.reason, guards=guards or {})


def _still(needs: Needs, held: PrivilegeSet) -> Needs:
    """Those of the needs that nothing held meets."""
    return [need for need in needs if not held & need[1]]


async def _end(steps: AsyncIterator[ObjId]) -> None:
    # Left to the garbage collector, a generator is closed in a task of its own, at some time.
    if type(steps) is AsyncGeneratorType:
        await steps.aclose()


# --- explanations -------------------------------------------------------------------------------------------


def _note(
    notes: Notes,
    before: Needs,
    after: Needs,
    target: Target,
    on: tuple[str, str],
    reach: Reach | None,
    securable: ObjId,
) -> None:
    notes += [_Met(need, by, target, on, reach, securable) for need, by in before if (need, by) not in after]


async def _step(standing: Standing, met: _Met) -> GrantStep:
    """The grant behind a note, by name."""
    names = {role.id: role.name for role in standing.roles}
    reach = met.reach
    if reach is None:
        for role in standing.roles:
            held = unpack_privileges(role.realm_privileges) & met.by
            if held:
                return _grant_step(met, held, role.name, "")
    else:
        granted = await reach.find_each(met.securable)
        for catalog_role, privileges in zip(reach.roles, granted, strict=True):
            held = privileges & met.by
            if held:
                user = names[reach.users[catalog_role][0]]
                return _grant_step(met, held, user, reach.names[catalog_role])
    raise AssertionError("what was found to be held is held by a role")


def _grant_step(met: _Met, held: PrivilegeSet, principal_role: str, catalog_role: str) -> GrantStep:
    by = met.need if held & met.need.bit else next(members(held))
    kind, name = met.on
    return GrantStep(met.need.name, by.name, principal_role, catalog_role, kind, name, met.target.name)
