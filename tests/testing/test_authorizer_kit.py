"""Authorizers that are wrong on purpose: a kit that cannot fail proves nothing."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from inspect import signature
from typing import Any

import msgspec
import pytest

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authorizer, Decision, GrantStep, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.rbac.privileges import Privilege
from cynosure.persistence.commit import View
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.spi import ObjId
from cynosure.testing.access_world import AccessWorld
from cynosure.testing.authorizer_kit import INNER, NOTHING, OUTER, TABLE, AuthorizerKit, PlacedTarget
from tests.auth.access.test_authorizer import InternalStage

pytestmark = pytest.mark.anyio

Decide = Callable[..., Awaitable[Decision]]
Question = tuple[Caller, Operation, tuple[Target, ...], View | None, bool]


class Mutant(ABC):
    """The internal authorizer with one thing wrong."""

    def __init__(self, right: InternalAuthorizer) -> None:
        self._right = right
        self.remembered: dict[object, Decision] = {}

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        return await self.spoil(self._right.decide, (caller, operation, targets, view, explain))

    @abstractmethod
    async def spoil(self, decide: Decide, question: Question) -> Decision: ...


class AllowsEverything(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        return Decision(True)


class AsksForTheFirstTargetOnly(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        caller, operation, targets, view, explain = question
        first = Operation(operation.name, operation.needs[:1], operation.kinds[:1])
        return await decide(caller, first, targets[:1], view, explain=explain)


class IgnoresScope(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        caller, operation, targets, view, explain = question
        if caller.identity is not None:
            caller = msgspec.structs.replace(
                caller, identity=msgspec.structs.replace(caller.identity, scope=None)
            )
        return await decide(caller, operation, targets, view, explain=explain)


class Remembers(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        caller, operation, targets, view, explain = question
        key = (caller, operation, tuple(target.name for target in targets), explain)
        if key not in self.remembered:
            self.remembered[key] = await decide(caller, operation, targets, view, explain=explain)
        return self.remembered[key]


class GuardsNothing(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        *asked, explain = question
        return msgspec.structs.replace(await decide(*asked, explain=explain), guards={})


class GuardsPrincipalsOnly(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        *asked, explain = question
        decision = await decide(*asked, explain=explain)
        kept = {key: head for key, head in decision.guards.items() if key.name == "principals"}
        return msgspec.structs.replace(decision, guards=kept)


class ExplainsWithWhatIsNotThere(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        *asked, explain = question
        decision = await decide(*asked, explain=explain)
        made_up = GrantStep("TABLE_DROP", "TABLE_DROP", "reader", "role", "table", "x", "x")
        return msgspec.structs.replace(decision, path=(made_up,) * len(decision.path))


class SaysNothingIsMissing(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        *asked, explain = question
        return msgspec.structs.replace(await decide(*asked, explain=explain), missing=())


class WalksToTheEnd(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        *asked, explain = question
        for target in question[2]:
            if question[3] is not None:
                async for _ in target.walk(question[3]):
                    pass
        return await decide(*asked, explain=explain)


class RefusesEverything(Mutant):
    async def spoil(self, decide: Decide, question: Question) -> Decision:
        return Decision(False, reason="No.")


CAUGHT_BY = {
    AllowsEverything: "test_without_grants_nothing_is_allowed",
    RefusesEverything: "test_what_several_roles_have_adds_up",
    AsksForTheFirstTargetOnly: "test_the_needs_of_all_targets_must_be_met",
    IgnoresScope: "test_roles_that_are_not_active_give_nothing",
    Remembers: "test_what_was_granted_counts_at_once",
    GuardsNothing: "test_guards_are_the_heads_that_the_decision_rests_on",
    SaysNothingIsMissing: "test_all_needs_must_be_met",
    WalksToTheEnd: "test_a_target_is_walked_to_only_as_far_as_needed",
}


class Bound(InternalStage):
    """A stage on which every handle is a mutant."""

    def __init__(self, world: AccessWorld, mutant: type[Mutant] | None) -> None:
        super().__init__(world)
        self._mutant = mutant

    def open_handle(self) -> Any:
        right = super().open_handle()
        return right if self._mutant is None else self._mutant(right)


@pytest.fixture
async def world() -> AsyncIterator[AccessWorld]:
    async with open_persistence("memory:", initialise=True) as persistence:
        made = AccessWorld(persistence)
        await made.setup()
        yield made


async def run_kit(stage: Bound, name: str, **more: object) -> None:
    """One test of the kit, with the fixtures it asks for."""
    catalog = stage.catalog
    outer, inner = ("outer", OUTER), ("inner", INNER)
    handle: Authorizer = stage.open_handle()
    fixtures = {
        "stage": stage,
        "authorizer": handle,
        "table": PlacedTarget("table", catalog, outer, inner, ("table", TABLE)),
        "sibling": PlacedTarget("table", catalog, outer, inner, ("sibling", ObjId(1_004))),
        "namespace": PlacedTarget("namespace", catalog, outer, inner),
        **more,
    }
    test = getattr(AuthorizerKit(), name)
    await test(**{each: fixtures[each] for each in signature(test).parameters})


@pytest.mark.parametrize("mutant", CAUGHT_BY, ids=lambda each: each.__name__)
async def test_what_is_wrong_is_caught(world: AccessWorld, mutant: type[Mutant]):
    name = CAUGHT_BY[mutant]

    await run_kit(Bound(world, None), name)
    with pytest.raises(AssertionError):
        await run_kit(Bound(world, mutant), name)


async def test_a_commit_that_would_not_notice_a_revoked_grant_is_caught(world: AccessWorld):
    name = "test_what_was_taken_away_is_gone_on_every_server"

    await run_kit(Bound(world, None), name, after=NOTHING)
    with pytest.raises(AssertionError, match="must be able to notice"):
        await run_kit(Bound(world, GuardsPrincipalsOnly), name, after=NOTHING)


async def test_an_explanation_that_is_made_up_is_caught(world: AccessWorld):
    name, more = "test_an_explanation_says_the_same_and_why", {"held": Privilege.CATALOG_MANAGE_CONTENT}

    await run_kit(Bound(world, None), name, securable=OUTER, **more)
    with pytest.raises(AssertionError):
        await run_kit(Bound(world, ExplainsWithWhatIsNotThere), name, securable=OUTER, **more)
