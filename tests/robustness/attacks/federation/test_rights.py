"""Grants on tables of a remote that changes what is behind their names."""

from pathlib import Path

import httpx
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.load_table import load_table
from cynosure.federation.errors import NotShown, RemoteUnavailable
from cynosure.federation.remote import Abilities
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.small_access import P, on_table
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T, answer_of, open_far
from tests.federation.served import client_of

pytestmark = pytest.mark.anyio

B = Identifier(NS, "customers")
ROLES = "/api/management/v1/catalogs/far/catalog-roles"


async def load_uuid(far: Far, caller: Caller, table: Identifier) -> str | None:
    """The uuid of what the caller is shown under a name; `None`: nothing."""
    await far.federation.see_table(far.catalog, caller, table, is_fresh=True)
    try:
        uuid: str = answer_of(await load_table(far.catalog, caller, table))["table-uuid"]
    except NoSuchTable:
        return None
    return uuid


async def test_of_two_tables_that_change_names_nobody_gets_the_others(far: Far) -> None:
    first = far.put().metadata.table_uuid
    far.put(B, at="customers", uuid=OTHER_UUID)
    await far.see()
    await far.see(table=B)
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_DATA))
    bob = await far.people.add("bob", far.catalog, *on_table(B, P.TABLE_READ_DATA))
    far.remote.tables[T], far.remote.tables[B] = far.remote.tables[B], far.remote.tables[T]

    shown = {
        (who, table.name): await load_uuid(far, caller, table)
        for who, caller in (("ann", ann), ("bob", bob), ("ann", ann), ("bob", bob))
        for table in (T, B)
    }

    assert {shown["ann", "orders"], shown["ann", "customers"]} <= {None, first}
    assert {shown["bob", "orders"], shown["bob", "customers"]} <= {None, OTHER_UUID}
    assert await far.disagreements() == []


async def test_a_table_of_the_same_uuid_in_anothers_place_is_not_shown(far: Far) -> None:
    far.put()
    far.put(B, at="customers", uuid=OTHER_UUID)
    await far.see()
    await far.see(table=B)
    for place in ("customers", "customers/data", "orders/../customers", "orders//x", ".", "%2e"):
        far.put(T, at=place)
        with pytest.raises(NotShown):
            await far.see()

    assert await far.disagreements() == []


@pytest.mark.parametrize("window", ["max_staleness", "stale_if_down"])
async def test_what_counts_for_a_while_is_over_when_anybody_saw_another_table(
    tmp_path: Path, manual_clock: ManualClock, window: str
) -> None:
    async with open_far(tmp_path / "files", clock=manual_clock) as far:
        await far.set_properties(**{window: "PT1H"})
        far.put()
        await far.see()
        ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_DATA))
        await far.see(ann)
        far.put(uuid=THIRD_UUID)
        await far.federation.see_table(far.catalog, ann, T, is_fresh=True)
        far.remote.is_down = True

        # Whether the mirror is asked or the remote: it is another table, and ann has nothing on it.
        try:
            await far.see(ann)
        except RemoteUnavailable:
            assert window == "stale_if_down"
        with pytest.raises(NoSuchTable):
            await load_table(far.catalog, ann, T)


async def grant_to_readers(root: httpx.AsyncClient, table: str) -> tuple[int, list[object]]:
    """What granting on a table is answered, and what is granted then."""
    await root.post(ROLES, json={"catalogRole": {"name": "readers"}})
    grant = {"type": "table", "namespace": [*NS], "tableName": table, "privilege": "TABLE_READ_DATA"}
    answer = await root.put(f"{ROLES}/readers/grants", json={"grant": grant})
    return answer.status_code, (await root.get(f"{ROLES}/readers/grants")).json()["grants"]


@pytest.mark.parametrize("grants", ["validated", "by-name"])
@pytest.mark.parametrize(
    ("trouble", "status"),
    [("down", 503), ("outside", 403), ("odd name", 404), ("missing", 404), ("namespace", 404)],
)
async def test_a_grant_on_a_table_is_on_that_or_on_nothing(
    tmp_path: Path, manual_clock: ManualClock, grants: str, trouble: str, status: int
) -> None:
    lower = Abilities(has_views=False, has_nested_namespaces=False, has_transactions=False, names="lower")
    remote = MemoryRemote(lower)
    async with open_far(tmp_path / "files", clock=manual_clock, remote=remote) as far, client_of(far) as root:
        await far.set_properties(grants=grants)
        if trouble != "namespace":
            far.put(Identifier(NS, "beside"), at="beside", uuid=THIRD_UUID)
        if trouble == "outside":
            remote.put(T, far.metadata("../elsewhere"))
        remote.is_down = trouble == "down"

        answered, granted = await grant_to_readers(root, "Orders" if trouble == "odd name" else T.name)

        assert await far.disagreements() == []
    if grants == "validated":
        assert (answered, granted) == (status, [])
    else:
        # On a name: whether the remote has it does not matter. Never on anything above it.
        assert all(each["type"] == "table" for each in granted)  # type: ignore[index]
        assert answered == 201 or granted == []
