"""In random worlds, the authorizer, its explanation and a naive reading of the facts agree (I33).

The reading knows nothing of indexes, heads or memory: it looks through all grants for every question.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.entities import ROOT
from cynosure.auth.ports import Decision, Target
from cynosure.auth.rbac.grants import THE_CATALOG
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.auth.rbac.privileges import Privilege
from cynosure.auth.standing import Standings
from cynosure.auth.targets import CatalogRoleTarget, PrincipalRoleTarget, PrincipalTarget, RealmTarget
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.testing.access_world import AccessWorld, World
from cynosure.testing.authorizer_kit import PlacedTarget
from tests.auth.rbac import facts

PRINCIPALS = (ROOT, "ann", "bob")
PRINCIPAL_ROLES = ("pr0", "pr1", "pr2")
CATALOG_ROLES = ("cr0", "cr1", "cr2")
SECURABLES = tuple(ObjId(number) for number in range(100, 116))
GRANTED = sorted({name for names in facts.grantable().values() for name in names})
SATISFIED_BY = facts.satisfied_by()
NEEDS = facts.operations()

Chain = tuple[tuple[str, ObjId], ...]


class Tree(NamedTuple):
    """Where things are: per kind, the ways to the things of that kind."""

    ways: dict[str, list[Chain]]


class Case(NamedTuple):
    """A world and questions about it."""

    world: World
    tree: Tree
    scopes: dict[str, tuple[str, ...] | None]
    picks: list[int]


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Namespaces up to three deep, things in them, some renamed into another place, some made anew."""
    ids = iter(SECURABLES)
    spaces: list[Chain] = []
    for number in range(draw(st.integers(1, 5))):
        parents = [way for way in spaces if len(way) < 3]
        parent = draw(st.sampled_from([(), *parents]))
        spaces.append((*parent, (f"n{number}", next(ids))))
    ways: dict[str, list[Chain]] = {"namespace": spaces, "table": [], "view": [], "policy": []}
    for kind in ("table", "view", "policy"):
        for number in range(draw(st.integers(1, 2))):
            parent = draw(st.sampled_from(spaces))
            own = next(ids)
            ways[kind].append((*parent, (f"{kind}{number}", own)))
            match draw(st.sampled_from(["stays", "stays", "renamed", "made anew"])):
                case "renamed":
                    ways[kind][-1] = (*draw(st.sampled_from(spaces)), ("renamed", own))
                case "made anew":
                    ways[kind][-1] = (*parent, (f"{kind}{number}", ObjId(own + 1_000)))
    return Tree(ways)


subsets = lambda of: st.lists(st.sampled_from(of), unique=True, max_size=len(of)).map(tuple)  # noqa: E731


@st.composite
def cases(draw: st.DrawFn) -> Case:
    privileges = subsets([Privilege[name] for name in GRANTED])
    anything = subsets(list(Privilege))
    has = {name: draw(subsets(PRINCIPAL_ROLES)) for name in PRINCIPALS}
    world = World(
        principals=has,
        realm={role: draw(anything) for role in draw(subsets(PRINCIPAL_ROLES[:2]))},
        uses={role: draw(subsets(CATALOG_ROLES)) for role in PRINCIPAL_ROLES},
        grants={
            (draw(st.sampled_from(CATALOG_ROLES)), draw(st.sampled_from([THE_CATALOG, *SECURABLES]))): (
                draw(privileges)
            )
            for _ in range(draw(st.integers(0, 12)))
        },
        must_rotate=draw(st.sampled_from([(), (), (), ("bob",)])),
    )
    scopes: dict[str, tuple[str, ...] | None] = {}
    for name in PRINCIPALS:
        wanted = draw(st.none() | subsets(has[name])) if has[name] else None
        scopes[name] = wanted
    picks = draw(st.lists(st.integers(0, 10_000), min_size=20, max_size=20))
    return Case(world, draw(trees()), scopes, picks)


# --- the naive reading --------------------------------------------------------------------------------------


def active_roles(case: Case, principal: str) -> tuple[str, ...]:
    scope = case.scopes[principal]
    return case.world.principals[principal] if scope is None else scope


def is_met(case: Case, principal: str, need: str, target: Target, chain: Chain) -> bool:
    roles = active_roles(case, principal)
    if any(held.name in SATISFIED_BY[need] for role in roles for held in case.world.realm.get(role, ())):
        return True
    if target.catalog is None:
        return False
    on_the_way = {THE_CATALOG, *(securable for _, securable in chain)}
    used = {name for role in roles for name in case.world.uses[role]}
    return any(
        role in used and securable in on_the_way and any(each.name in SATISFIED_BY[need] for each in granted)
        for (role, securable), granted in case.world.grants.items()
    )


def read_facts(
    case: Case, principal: str, name: str, asked: list[tuple[Target, Chain]]
) -> tuple[bool, set[tuple[str, str]]]:
    """Whether it is allowed, and what is missing, by the words of the facts."""
    is_own = asked[0][0].name == principal
    if name == "rotate-credentials" and is_own:
        return True, set()
    if principal in case.world.must_rotate:
        return False, set()
    if name == "reset-credentials" and principal != "root":
        return False, set()
    if name == "explain-access" and is_own:
        return True, set()
    missing = set()
    for (_, needs), (target, chain) in zip(NEEDS[name], asked, strict=True):
        missing |= {(need, target.name) for need in needs if not is_met(case, principal, need, target, chain)}
    return not missing, missing


# --- asking -------------------------------------------------------------------------------------------------


def targets_of(
    case: Case, operation: Operation, catalog: CatalogId, pick: Iterator[int]
) -> Iterator[tuple[Target, Chain]]:
    for kind in operation.kinds:
        match kind:
            case "realm":
                yield RealmTarget("default"), ()
            case "principal":
                yield PrincipalTarget(PRINCIPALS[next(pick) % 3]), ()
            case "principal-role":
                yield PrincipalRoleTarget("pr0"), ()
            case "catalog-role":
                yield CatalogRoleTarget(catalog, "cr0"), ()
            case "catalog":
                yield PlacedTarget("catalog", catalog), ()
            case _:
                ways = case.tree.ways[kind]
                way = ways[next(pick) % len(ways)]
                yield PlacedTarget(kind, catalog, *way), way


def check_path(case: Case, principal: str, decision: Decision, asked: list[tuple[Target, Chain]]) -> None:
    """Every step of an explanation is a grant that is there, on the way, and meets the need."""
    roles = active_roles(case, principal)
    for step in decision.path:
        assert step.held in SATISFIED_BY[step.needed]
        assert step.principal_role in roles
        if step.on_kind == "realm":
            assert Privilege[step.held] in case.world.realm[step.principal_role]
            continue
        assert step.catalog_role in case.world.uses[step.principal_role]
        places = {THE_CATALOG} if step.on_kind == "catalog" else set()
        for target, chain in asked:
            if target.name == step.target:
                for depth, (_, securable) in enumerate(chain):
                    if target.place(depth) == (step.on_kind, step.on):
                        places.add(securable)
        assert any(
            Privilege[step.held] in case.world.grants.get((step.catalog_role, place), ()) for place in places
        )


async def check(world: AccessWorld, authorizers: Sequence[InternalAuthorizer], case: Case) -> None:
    await world.make(case.world)
    view = await world.view()
    pick = _cycle(case.picks)
    for principal in PRINCIPALS:
        caller = world.caller(principal, case.scopes[principal])
        for operation in OPERATIONS.values():
            asked = list(targets_of(case, operation, world.catalog, pick))
            targets = tuple(target for target, _ in asked)
            is_allowed, missing = read_facts(case, principal, operation.name, asked)
            for authorizer in authorizers:
                plain = await authorizer.decide(caller, operation, targets, view)
                told = await authorizer.decide(caller, operation, targets, view, explain=True)
                assert (plain.is_allowed, plain.missing) == (told.is_allowed, told.missing)
                assert plain.is_allowed == is_allowed, (principal, operation.name)
                assert {(each.privilege, each.target) for each in plain.missing} == missing
                if not told.reason:
                    needed = {need for _, needs in NEEDS[operation.name] for need in needs}
                    assert {step.needed for step in told.path} | {need for need, _ in missing} == needed
                    check_path(case, principal, told, asked)
        for kind in ("namespace", "table", "view"):
            await check_visible(world, authorizers[0], case, principal, kind)


async def check_visible(
    world: AccessWorld, authorizer: InternalAuthorizer, case: Case, principal: str, kind: str
) -> None:
    """Something may be seen by itself exactly when it, or what it is in, is among what is visible."""
    caller, view = world.caller(principal, case.scopes[principal]), await world.view()
    visible = await authorizer.visible(caller, world.catalog, Privilege[f"{kind.upper()}_LIST"])
    for way in case.tree.ways[kind]:
        target = PlacedTarget(kind, world.catalog, *way)
        decision = await authorizer.decide(caller, OPERATIONS[f"{kind}-exists"], (target,), view)
        is_visible = visible.is_everything or any(securable in visible.ids for _, securable in way)
        assert decision.is_allowed == is_visible


def _cycle(numbers: list[int]) -> Iterator[int]:
    while True:
        yield from numbers


def test_the_authorizer_and_its_explanation_say_what_the_facts_say():
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def opened() -> tuple[AccessWorld, list[InternalAuthorizer]]:
            persistence = await stack.enter_async_context(open_persistence("memory:", initialise=True))
            world = AccessWorld(persistence)
            await world.setup()
            return world, [InternalAuthorizer(persistence, Standings(persistence)) for _ in range(2)]

        # One store for all examples: what was remembered of one world must not leak into the next.
        world, authorizers = runner.run(opened())
        try:

            @settings(max_examples=max(40, settings.default.max_examples // 4))
            @given(cases())
            def in_any_world(case: Case) -> None:
                runner.run(check(world, authorizers, case))

            in_any_world()
        finally:
            runner.run(stack.aclose())


@pytest.mark.anyio
async def test_a_decision_is_one_of_those_that_were_true_while_it_was_made(world: AccessWorld):
    target = PlacedTarget("table", world.catalog, ("n", ObjId(100)), ("t", ObjId(101)))
    granted = World(
        {"ann": ("pr0",)},
        uses={"pr0": ("cr0",)},
        grants={("cr0", ObjId(101)): (Privilege.TABLE_READ_DATA,)},
    )
    revoked = World({"ann": ("pr0",)}, uses={"pr0": ("cr0",)})
    await world.make(revoked)
    authorizer = InternalAuthorizer(world.persistence, Standings(world.persistence))
    begun, done = 0, 0
    """Version `n` is granted when it is odd; between the two, both may be true."""

    async def change() -> None:
        nonlocal begun, done
        for number in range(1, 41):
            begun = number
            await world.make(granted if number % 2 else revoked)
            done = number

    async def ask() -> int:
        asked = 0
        while done < 40:
            first = done
            decision = await authorizer.decide(
                world.caller("ann"), OPERATIONS["load-table"], (target,), await world.view()
            )
            possible = {bool(number % 2) for number in range(first, begun + 1)}
            assert decision.is_allowed in possible
            asked += 1
            await asyncio.sleep(0)
        return asked

    _, *asked = await asyncio.gather(change(), *(ask() for _ in range(4)))

    assert min(asked) > 0
