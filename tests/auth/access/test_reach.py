"""What principal roles have in a catalog is kept by head, bounded, and nothing of a role that is gone."""

import msgspec
import pytest

from cynosure.auth.access.reach import FEW_ROLES, MOST_HELD, MOST_REACHES, Reach, Reaches
from cynosure.auth.caller import operator_caller
from cynosure.auth.committing import commit_part
from cynosure.auth.rbac.grants import THE_CATALOG
from cynosure.auth.rbac.privileges import NONE, set_of
from cynosure.auth.rbac.privileges import Privilege as P
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.testing.access_world import AccessWorld, World

pytestmark = pytest.mark.anyio
TABLE = ObjId(500)
TWO_ROLES = World(
    {"ann": ("pr",)},
    uses={"pr": ("one", "two"), "other": ("two",)},
    grants={
        ("one", THE_CATALOG): (P.TABLE_LIST,),
        ("two", THE_CATALOG): (P.VIEW_LIST,),
        ("one", TABLE): (P.TABLE_READ_DATA,),
        ("two", TABLE): (P.TABLE_DROP,),
    },
)


async def load(world: AccessWorld, reaches: Reaches, *roles: str) -> Reach:
    ids = tuple(world.id_of("principal-role", role) for role in roles)
    return await reaches.load(world.realm, world.catalog, ids)


async def test_privileges_of_all_catalog_roles_are_joined(world: AccessWorld):
    await world.make(TWO_ROLES)

    found = await load(world, Reaches(world.persistence), "pr")

    assert found.on_catalog == set_of([P.TABLE_LIST, P.VIEW_LIST])
    assert await found.load_held(TABLE) == set_of([P.TABLE_READ_DATA, P.TABLE_DROP])
    assert await found.load_held(ObjId(501)) == NONE
    assert sorted(found.names.values()) == ["one", "two"]


async def test_it_is_kept_while_the_head_stays_and_read_anew_when_it_moves(world: AccessWorld):
    await world.make(TWO_ROLES)
    reaches = Reaches(world.persistence)
    first = await load(world, reaches, "pr")
    again = await load(world, reaches, "pr")

    await world.make(msgspec.structs.replace(TWO_ROLES, grants={}))
    after = await load(world, reaches, "pr")

    assert again is first
    assert after is not first
    assert after.on_catalog == NONE
    assert after.head != first.head


async def test_without_roles_there_is_nothing(world: AccessWorld):
    await world.make(TWO_ROLES)

    found = await load(world, Reaches(world.persistence))

    assert (found.roles, found.on_catalog, await found.load_held(TABLE)) == ((), NONE, NONE)


async def test_a_catalog_role_that_is_gone_has_nothing_whatever_entries_are_left(world: AccessWorld):
    await world.make(TWO_ROLES)
    gone = encode_id_key(world.id_of("catalog-role", "two"))

    async def delete(view: View) -> Prepared[None]:
        return Prepared(None, {"ids": {gone: None}})

    await commit_part(world.persistence.committer(world.grants), operator_caller(), "test", delete)

    found = await load(world, Reaches(world.persistence), "pr")
    assert found.on_catalog == P.TABLE_LIST.bit
    assert await found.load_held(TABLE) == P.TABLE_READ_DATA.bit


async def test_a_catalog_that_does_not_exist_is_refused_and_not_remembered(world: AccessWorld):
    with pytest.raises(NotFound):
        await Reaches(world.persistence).load(world.realm, CatalogId("999"), ())


async def test_what_is_remembered_is_bounded(world: AccessWorld):
    await world.make(TWO_ROLES)
    reaches = Reaches(world.persistence)
    first = await load(world, reaches, "pr")

    for number in range(MOST_HELD + 1):
        await first.load_held(ObjId(number))
    kept = sum(first.get_held(ObjId(number)) is not None for number in range(MOST_HELD + 1))
    for number in range(MOST_REACHES):
        await reaches.load(world.realm, world.catalog, (ObjId(number),))

    assert kept <= MOST_HELD
    assert await load(world, reaches, "pr") is not first, "the oldest is the first to go"


async def test_granted_securables_come_from_the_roles_own_grants(world: AccessWorld):
    await world.make(TWO_ROLES)

    found = await load(world, Reaches(world.persistence), "pr")

    assert await found.load_granted(P.TABLE_READ_PROPERTIES) == {TABLE}
    assert await found.load_granted(P.TABLE_LIST) == {TABLE}, "the catalog is no securable below itself"
    assert await found.load_granted(P.TABLE_DROP) == {TABLE}
    assert await found.load_granted(P.VIEW_DROP) == frozenset()
    assert await found.load_granted(P.TABLE_DROP) is await found.load_granted(P.TABLE_DROP)


@pytest.mark.parametrize("granted", [1, FEW_ROLES + 3])
@pytest.mark.parametrize("others", [0, 20])
async def test_many_catalog_roles_have_what_each_of_them_has(world: AccessWorld, granted: int, others: int):
    names = [f"role-{number}" for number in range(FEW_ROLES + 3)]
    grants = {(name, TABLE): (P.TABLE_DROP,) for name in names[:granted]}
    strangers = {(f"stranger-{number}", TABLE): tuple(P) for number in range(others)}
    await world.make(World({"ann": ("pr",)}, uses={"pr": tuple(names)}, grants={**grants, **strangers}))

    found = await load(world, Reaches(world.persistence), "pr")

    each = dict(zip((found.names[role] for role in found.roles), await found.find_each(TABLE), strict=True))
    assert each == {name: P.TABLE_DROP.bit if (name, TABLE) in grants else NONE for name in names}
    assert await found.load_held(TABLE) == P.TABLE_DROP.bit
    assert await found.load_held(ObjId(501)) == NONE
