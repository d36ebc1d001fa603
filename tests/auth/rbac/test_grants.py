"""Both directions of grants and assignments stay in step, whatever is changed in whatever order (I32)."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.auth.caller import operator_caller
from cynosure.auth.committing import commit_part
from cynosure.auth.rbac.grants import (
    ASSIGNMENTS,
    GRANTS,
    THE_CATALOG,
    Changes,
    assignee_key,
    assignee_prefix,
    by_role_key,
    by_role_prefix,
    change_assignment,
    change_grant,
    find_grant,
    pack_privileges,
    remove_assignments_of_role,
    remove_grants_of_role,
    second_id,
    securable_key,
    securable_prefix,
    unpack_privileges,
    usage_key,
    usage_prefix,
)
from cynosure.auth.rbac.privileges import NONE, Privilege, set_of
from cynosure.common.errors import CorruptObject
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.listing import scan_all
from cynosure.persistence.spi import ObjId
from cynosure.testing.access_world import AccessWorld
from cynosure.testing.small_store import SmallStore

pytestmark = pytest.mark.anyio
ids = st.integers(min_value=0, max_value=(1 << 63) - 1).map(ObjId)
READ, DROP = Privilege.TABLE_READ_DATA.bit, Privilege.TABLE_DROP.bit
ROLE, OTHER, TABLE = ObjId(11), ObjId(12), ObjId(21)


async def commit(world: AccessWorld, change: Callable[[View], Awaitable[Changes]]) -> None:
    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, await change(view))

    await commit_part(world.persistence.committer(world.grants), operator_caller(), "test", prepare)


async def grant(world: AccessWorld, role: ObjId, securable: ObjId, **sets: int) -> None:
    await commit(world, lambda view: change_grant(view, role, securable, **sets))


async def assign(world: AccessWorld, user: ObjId, role: ObjId, *, is_assigned: bool = True) -> None:
    await commit(world, lambda view: change_assignment(view, user, role, is_assigned=is_assigned))


async def read(world: AccessWorld) -> State:
    return (await world.persistence.committer(world.grants).read()).state


async def assert_in_step(view: View) -> None:
    grants = dict(await scan_all(view, GRANTS, b""))
    assert grants.keys() == {
        each for key in grants if key[:1] == b"s" for each in (key, b"r" + key[10:] + key[1:10])
    }
    for key, value in grants.items():
        assert value, "an empty set is no entry"
        if key[:1] == b"s":
            assert grants[b"r" + key[10:] + key[1:10]] == value
    used = {key for key, _ in await scan_all(view, ASSIGNMENTS, b"")}
    assert used == {each for key in used if key[:1] == b"u" for each in (key, b"a" + key[10:] + key[1:10])}


@given(st.sets(st.sampled_from(Privilege)))
def test_a_set_of_privileges_survives_packing(privileges: set[Privilege]):
    bits = set_of(privileges)

    assert unpack_privileges(pack_privileges(bits)) == bits


def test_packed_sets_are_small_and_stay_as_they_are():
    assert pack_privileges(NONE) == b""
    assert pack_privileges(Privilege.TABLE_READ_DATA.bit).hex() == "000010"
    assert pack_privileges(Privilege.TABLE_MANAGE_STRUCTURE.bit).hex() == "00" * 12 + "40"
    assert len(pack_privileges(set_of(Privilege))) == 13


@given(first=ids, second=ids)
def test_keys_hold_both_ids_and_begin_with_their_prefix(first: ObjId, second: ObjId):
    pairs = [
        (securable_key, securable_prefix),
        (by_role_key, by_role_prefix),
        (usage_key, usage_prefix),
        (assignee_key, assignee_prefix),
    ]

    for make_key, make_prefix in pairs:
        key = make_key(first, second)
        assert key.startswith(make_prefix(first))
        assert second_id(key) == second
        assert b"\x00" not in key
    assert len({make_key(first, second)[:1] for make_key, _ in pairs}) == 4


def test_keys_stay_as_they_are():
    assert securable_key(ObjId(1), ObjId(300)).hex() == "73" + "80" * 8 + "81" + "80" * 7 + "82ac"
    assert by_role_key(ObjId(1), THE_CATALOG).hex() == "72" + "80" * 8 + "81" + "80" * 9
    assert usage_key(ObjId(1), ObjId(2)).hex() == "75" + "80" * 8 + "81" + "80" * 8 + "82"
    assert assignee_key(ObjId(1), ObjId(2)).hex() == "61" + "80" * 8 + "81" + "80" * 8 + "82"


def test_a_key_that_holds_no_two_ids_is_damage():
    with pytest.raises(CorruptObject):
        second_id(b"s123")


async def test_a_grant_is_found_from_both_sides_and_removed_from_both(world: AccessWorld):
    await grant(world, ROLE, TABLE, add=READ | DROP)
    added = await read(world)
    await grant(world, ROLE, TABLE, remove=READ)
    reduced = await read(world)
    await grant(world, ROLE, TABLE, remove=DROP)
    removed = await read(world)

    assert await find_grant(added, ROLE, TABLE) == READ | DROP
    assert await added.find(GRANTS, by_role_key(ROLE, TABLE)) == pack_privileges(READ | DROP)
    assert await find_grant(reduced, ROLE, TABLE) == DROP
    assert await reduced.find(GRANTS, by_role_key(ROLE, TABLE)) == pack_privileges(DROP)
    assert await scan_all(removed, GRANTS, b"") == []


async def test_granting_twice_and_revoking_what_is_not_there_change_nothing(world: AccessWorld):
    await grant(world, ROLE, TABLE, add=READ)
    state = await read(world)

    assert await change_grant(state, ROLE, TABLE, add=READ) == {}
    assert await change_grant(state, ROLE, TABLE, remove=DROP) == {}
    assert await change_grant(state, OTHER, TABLE, remove=READ) == {}
    assert await change_grant(state, ROLE, THE_CATALOG, remove=READ) == {}


async def test_privileges_of_a_newer_version_survive_a_change(world: AccessWorld):
    unknown = 1 << 300
    await grant(world, ROLE, TABLE, add=READ | unknown)

    await grant(world, ROLE, TABLE, add=DROP, remove=READ)

    assert await find_grant(await read(world), ROLE, TABLE) == DROP | unknown


async def test_an_assignment_is_found_from_both_sides_and_made_once(world: AccessWorld):
    await assign(world, OTHER, ROLE)
    assigned = await read(world)
    again = await change_assignment(assigned, OTHER, ROLE, is_assigned=True)
    await assign(world, OTHER, ROLE, is_assigned=False)
    taken = await read(world)

    assert await assigned.find(ASSIGNMENTS, usage_key(OTHER, ROLE)) == b""
    assert await assigned.find(ASSIGNMENTS, assignee_key(ROLE, OTHER)) == b""
    assert again == {}
    assert await scan_all(taken, ASSIGNMENTS, b"") == []
    assert await change_assignment(taken, OTHER, ROLE, is_assigned=False) == {}


async def test_a_role_is_cleared_a_part_at_a_time_and_nothing_of_others_goes(world: AccessWorld):
    for number in range(5):
        for role in (ROLE, OTHER):
            await grant(world, role, ObjId(100 + number), add=READ)
        await assign(world, ObjId(200 + number), ROLE)

    await commit(world, lambda view: remove_grants_of_role(view, ROLE, most=3))
    await commit(world, lambda view: remove_assignments_of_role(view, ROLE, most=2))
    part = await read(world)
    await commit(world, lambda view: remove_grants_of_role(view, ROLE, most=3))
    await commit(world, lambda view: remove_assignments_of_role(view, ROLE, most=9))
    whole = await read(world)

    assert len(await scan_all(part, GRANTS, by_role_prefix(ROLE))) == 2
    assert len(await scan_all(part, ASSIGNMENTS, assignee_prefix(ROLE))) == 3
    await assert_in_step(part)
    await assert_in_step(whole)
    assert len(await scan_all(whole, GRANTS, b"")) == 10
    assert await scan_all(whole, ASSIGNMENTS, b"") == []
    assert await remove_grants_of_role(whole, ROLE, most=3) == {}


changes = st.lists(
    st.tuples(
        st.sampled_from([ROLE, OTHER, ObjId(13)]),
        st.sampled_from([THE_CATALOG, TABLE, ObjId(22)]),
        st.sets(st.sampled_from(list(Privilege)[:6])).map(set_of),
        st.sets(st.sampled_from(list(Privilege)[:6])).map(set_of),
        st.booleans(),
    ),
    max_size=30,
)


@given(changes)
def test_any_sequence_of_changes_leaves_what_a_dictionary_would_hold(
    steps: list[tuple[ObjId, ObjId, int, int, bool]],
):
    async def run() -> None:
        view = Overlay(await State.load(SmallStore().store(), NO_COMMIT))
        held: dict[tuple[ObjId, ObjId], int] = {}
        used: set[tuple[ObjId, ObjId]] = set()
        for role, securable, add, remove, is_assigned in steps:
            view.add(await change_grant(view, role, securable, add=add, remove=remove))
            view.add(await change_assignment(view, securable, role, is_assigned=is_assigned))
            held[role, securable] = (held.get((role, securable), 0) | add) & ~remove
            used = used | {(securable, role)} if is_assigned else used - {(securable, role)}
        await assert_in_step(view)
        for (role, securable), bits in held.items():
            assert await find_grant(view, role, securable) == bits
        assert len(await scan_all(view, ASSIGNMENTS, b"")) == 2 * len(used)

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(3))
async def test_racing_grants_and_revocations_are_all_applied_and_in_step(world: AccessWorld, seed: int):
    chance = random.Random(seed)
    privileges = list(Privilege)[:8]
    expected: dict[tuple[ObjId, ObjId], int] = {}
    rounds = []
    for _ in range(20):
        # Distinct privileges per round: whatever order they are applied in, the result is the same.
        batch = [
            (ObjId(chance.randrange(1, 3)), ObjId(chance.randrange(4)), each, chance.random() < 0.6)
            for each in chance.sample(privileges, 5)
        ]
        rounds.append(batch)
        for role, securable, each, is_added in batch:
            before = expected.get((role, securable), 0)
            expected[role, securable] = before | each.bit if is_added else before & ~each.bit

    for batch in rounds:
        await asyncio.gather(
            *(
                grant(world, role, securable, **{"add" if is_added else "remove": each.bit})
                for role, securable, each, is_added in batch
            )
        )

    state = await read(world)
    await assert_in_step(state)
    for (role, securable), bits in expected.items():
        assert await find_grant(state, role, securable) == bits
