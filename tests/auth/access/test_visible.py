"""Where a caller holds something: all that it has, and nothing that it has not."""

import pytest

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.access.visible import EVERYTHING, NOTHING, find_visible, has_catalog_role
from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.ports import Decision, Target
from cynosure.auth.rbac.grants import THE_CATALOG
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.rbac.privileges import Privilege as P
from cynosure.auth.standing import Standings
from cynosure.persistence.commit import View
from cynosure.persistence.spi import ObjId
from cynosure.testing.access_world import AccessWorld, World

pytestmark = pytest.mark.anyio
A, B, C, D = (ObjId(number) for number in range(10, 14))
SOME = World(
    {"ann": ("pr",), "bob": ("other",), "eve": ()},
    uses={"pr": ("one", "two"), "other": ("three",)},
    grants={
        ("one", A): (P.TABLE_READ_DATA,),
        ("one", B): (P.TABLE_DROP,),
        ("two", C): (P.CATALOG_MANAGE_CONTENT,),
        ("three", D): (P.TABLE_LIST,),
        ("three", THE_CATALOG): (P.VIEW_LIST,),
    },
)


def authorizer_of(world: AccessWorld) -> InternalAuthorizer:
    return InternalAuthorizer(world.persistence, Standings(world.persistence))


async def test_it_is_where_one_of_the_callers_roles_has_what_satisfies_it(world: AccessWorld):
    await world.make(SOME)
    authorizer = authorizer_of(world)

    ann = await find_visible(authorizer, world.caller("ann"), world.catalog, P.TABLE_LIST)
    bob = await find_visible(authorizer, world.caller("bob"), world.catalog, P.TABLE_LIST)
    bobs_views = await find_visible(authorizer, world.caller("bob"), world.catalog, P.VIEW_LIST)

    assert ann is not None
    assert (ann.is_everything, ann.ids) == (False, {A, C})
    assert bob is not None
    assert bob.ids == {D}
    assert bobs_views == EVERYTHING


async def test_who_has_nothing_sees_nothing_and_the_operator_everything(world: AccessWorld):
    await world.make(SOME)
    authorizer = authorizer_of(world)

    async def see(caller: Caller) -> object:
        return await find_visible(authorizer, caller, world.catalog, P.TABLE_LIST)

    assert await see(world.caller("eve")) == NOTHING
    assert await see(Caller("ann", world.realm)) == NOTHING
    assert await see(world.caller("ann", scope=[])) == NOTHING
    assert await see(operator_caller()) == EVERYTHING


async def test_who_must_rotate_its_credentials_sees_nothing(world: AccessWorld):
    await world.make(World(SOME.principals, uses=SOME.uses, grants=SOME.grants, must_rotate=("bob",)))
    authorizer, bob = authorizer_of(world), world.caller("bob")

    assert await find_visible(authorizer, bob, world.catalog, P.TABLE_LIST) == NOTHING
    assert not await has_catalog_role(authorizer, bob, world.catalog)


async def test_a_role_in_the_catalog_is_had_or_not(world: AccessWorld):
    await world.make(SOME)
    authorizer = authorizer_of(world)

    assert await has_catalog_role(authorizer, world.caller("ann"), world.catalog)
    assert not await has_catalog_role(authorizer, world.caller("eve"), world.catalog)
    assert not await has_catalog_role(authorizer, Caller("ann", world.realm), world.catalog)
    assert await has_catalog_role(authorizer, operator_caller(), world.catalog)


class YesAuthorizer:
    """Says yes and cannot say where."""

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        return Decision(True)


async def test_an_authorizer_that_cannot_say_where_is_not_taken_for_everything(world: AccessWorld):
    caller = world.caller("ann")

    assert await find_visible(YesAuthorizer(), caller, world.catalog, P.TABLE_LIST) is None
    assert not await has_catalog_role(YesAuthorizer(), caller, world.catalog)


async def test_it_changes_with_the_next_question_after_a_grant(world: AccessWorld):
    await world.make(SOME)
    authorizer, ann = authorizer_of(world), world.caller("ann")
    before = await find_visible(authorizer, ann, world.catalog, P.TABLE_LIST)

    await world.make(World(SOME.principals, uses=SOME.uses, grants={("two", B): (P.TABLE_LIST,)}))
    after = await find_visible(authorizer, ann, world.catalog, P.TABLE_LIST)

    assert before is not None
    assert after is not None
    assert (before.ids, after.ids) == ({A, C}, {B})
