"""A migration that is asked for again when it is done: that is said, and nothing happens.

Holds I123.
"""

import pytest
from msgspec import structs

from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.client.migration import Choices, Moved
from cynosure.common.errors import BadInput
from cynosure.testing.small_catalog import ROOT
from tests.federation.migration.into_world import OURS, STAYS, Two, make_catalog
from tests.federation.migration.moving import U, ask, migration, outcomes
from tests.federation.seen_world import NS, OTHER_UUID, Far, T

pytestmark = pytest.mark.anyio

ORDERS = ("ns", "orders")
ONE = structs.replace(OURS, tables=(ORDERS,))


@pytest.fixture
async def two(far: Far) -> Two:
    """Tables at the remote, and a catalog to move them into."""
    made = Two(far)
    await make_catalog(far)
    await made.fill()
    return made


def tables(moved: Moved) -> dict[str, str]:
    return outcomes([each for each in moved.objects if each.type != "namespace"])


async def move_again(two: Two, choices: Choices) -> Moved:
    """Move something that is moved; nothing is changed by it."""
    commits, asked = await two.count_commits(), len(two.far.remote.asked)
    told = await migration(two.far).move(choices)
    assert await two.count_commits() == commits
    assert not {"rename-table", "drop-table"} & set(two.far.remote.asked[asked:])
    return told


@pytest.mark.parametrize(
    "choices", [ONE, OURS, structs.replace(OURS, namespaces=(NS,)), structs.replace(ONE, leave_behind=True)]
)
async def test_what_is_done_is_told_and_not_done_again(two: Two, choices: Choices) -> None:
    first = await migration(two.far).move(choices)

    again = await move_again(two, choices)

    assert (again.phase, again.into, again.obstacles) == ("done", "ours", [])
    assert tables(again) == dict.fromkeys(tables(first), "there")
    assert all(each.reason.startswith("moved on 20") for each in again.objects if each.type == "table")


async def test_a_dry_run_tells_what_is_there_as_well(two: Two) -> None:
    await migration(two.far).move(ONE)

    told = await migration(two.far).survey(OURS)

    assert tables(told) == {"ns.orders": "there", "ns.deep.items": "ready", "ns.stays": "ready"}
    assert outcomes(told.objects)["ns"] == "there"


async def test_what_is_named_besides_is_moved(two: Two) -> None:
    await migration(two.far).move(ONE)
    both = structs.replace(OURS, tables=(ORDERS, ("ns", "stays")))

    moved = await migration(two.far).move(both)

    assert (moved.phase, tables(moved)) == ("done", {"ns.orders": "there", "ns.stays": "released"})
    assert set(two.far.remote.tables) == {U}


async def test_an_empty_namespace_that_came_since_is_something_to_do(two: Two) -> None:
    await migration(two.far).move(OURS)
    two.far.remote.namespaces["late",] = {}

    assert outcomes((await migration(two.far).move(OURS)).objects)["late"] == "taken"
    assert outcomes((await move_again(two, OURS)).objects)["late"] == "there"


async def test_what_never_was_there_is_still_an_error(two: Two) -> None:
    await migration(two.far).move(ONE)
    ours = await two.open()
    await two.create("ours", Identifier(NS, "mine"), f"{ours.base.text}/mine")

    for name in ("mine", "odrers"):
        choices = structs.replace(OURS, tables=(ORDERS, ("ns", name)))
        told = await move_again(two, choices)
        assert (told.phase, [each.path for each in told.obstacles]) == ("none", [("ns", name)])
        with pytest.raises(BadInput, match="no table or view"):
            await ask(two.far, choices.to_step("begin"))


async def test_a_namespace_that_never_was_there_is_an_error_also_in_place(two: Two) -> None:
    for choices in (Choices(namespaces=(("typo",),)), structs.replace(OURS, namespaces=(("typo",),))):
        told = await move_again(two, choices)
        assert (told.phase, [each.path for each in told.obstacles]) == ("none", [("typo",)])
        with pytest.raises(BadInput, match="no namespace"):
            await ask(two.far, choices.to_step("begin"))


async def test_a_namespace_that_the_remote_dropped_since_is_no_error(two: Two) -> None:
    choices = structs.replace(OURS, namespaces=(("ns", "deep"),))
    await migration(two.far).move(choices)
    del two.far.remote.namespaces["ns", "deep"]

    assert tables(await move_again(two, choices)) == {"ns.deep.items": "there"}


async def test_what_went_into_one_catalog_is_not_in_another(two: Two) -> None:
    await make_catalog(two.far, "others")
    await migration(two.far).move(ONE)

    told = await move_again(two, structs.replace(ONE, into="others"))

    assert (told.phase, [each.path for each in told.obstacles]) == ("none", [ORDERS])


async def test_what_became_of_it_since_is_told(two: Two) -> None:
    await migration(two.far).move(ONE)
    ours, renamed = await two.open(), Identifier(NS, "renamed")

    await rename_table(ours, ROOT, T, renamed)
    (told,) = [each for each in (await move_again(two, ONE)).objects if each.type == "table"]
    assert (told.outcome, told.reason.partition("; ")[2]) == ("there", "its name there is ns.renamed")
    await drop_table(ours, ROOT, renamed)
    (told,) = [each for each in (await move_again(two, ONE)).objects if each.type == "table"]
    assert (told.outcome, told.reason.partition("; ")[2]) == ("gone", "ours has it no more")


async def test_another_table_of_the_name_is_an_error_that_names_both(two: Two) -> None:
    await migration(two.far).move(ONE)
    ours = str((await two.load())["table-uuid"])
    await two.put(at="anew", uuid=OTHER_UUID)

    told = await move_again(two, ONE)

    assert (told.phase, [each.path for each in told.obstacles]) == ("none", [ORDERS])
    assert told.obstacles[0].reason == (
        f"ours has another table of this name: {ours}; the remote has {OTHER_UUID}"
    )


async def test_a_name_that_was_never_moved_and_that_both_have_is_the_same_error(two: Two) -> None:
    ours = await two.open()
    await create_namespace(ours, ROOT, NS, {})
    await two.create("ours", T, f"{ours.base.text}/mine")

    told = await move_again(two, ONE)

    assert str((await two.load())["table-uuid"]) in told.obstacles[0].reason
    assert two.far.remote.tables[T].uuid in told.obstacles[0].reason


async def test_a_catalog_that_was_moved_in_place_is_asked_for_its_tables(two: Two) -> None:
    await migration(two.far).move(ONE)
    await migration(two.far).move(Choices())

    assert tables(await move_again(two, ONE)) == {"ns.orders": "there"}
    for choices in (Choices(), Choices(tables=(("ns", "stays"),)), Choices(namespaces=(NS,))):
        told = await move_again(two, choices)
        assert (told.phase, told.obstacles) == ("done", [])
    for choices, path in (
        (Choices(tables=(("ns", "odrers"),)), ("ns", "odrers")),
        (structs.replace(OURS, tables=(("ns", "stays"),)), ("ns", "stays")),
    ):
        told = await move_again(two, choices)
        assert path in [each.path for each in told.obstacles]


async def test_a_table_that_was_chosen_in_place_and_dropped_since_is_no_error(two: Two) -> None:
    choices = Choices(tables=(ORDERS,))
    await migration(two.far).move(choices)
    await drop_table(await two.open("far"), ROOT, T)

    assert tables(await move_again(two, choices)) == {"ns.orders": "gone"}
    assert set(two.far.remote.tables) == {U, STAYS}


async def test_a_dry_run_for_another_catalog_is_possible_on_the_way(two: Two) -> None:
    await make_catalog(two.far, "others")
    await ask(two.far, {"step": "begin", "into": "others"})

    told = await migration(two.far).survey(ONE)

    assert tables(told) == {"ns.orders": "ready"}
