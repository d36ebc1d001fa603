"""What names something that is gone is removed; what can come back keeps its grants."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.rbac.grants import ASSIGNMENTS, GRANTS
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.roles import delete_catalog_role as deleting
from cynosure.catalog.roles import sweep_grants as sweeping
from cynosure.catalog.roles.delete_catalog_role import delete_catalog_role
from cynosure.catalog.roles.sweep_grants import SweepPlaces, sweep_grants
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, make
from tests.catalog.world import NS, OTHER, Lake, open_lake

pytestmark = pytest.mark.anyio


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as lake:
        yield lake


async def count(catalog: OpenCatalog, index: str) -> int:
    return len(await (await catalog.grants.read()).state.scan(index, limit=10_000))


async def test_nothing_that_is_there_is_removed(lake: Lake) -> None:
    grants = [*on_catalog(P.TABLE_LIST), *on_namespace(NS, P.TABLE_LIST), *on_table(T, P.TABLE_LIST)]
    await lake.people.add("ann", lake.catalog, *grants)

    assert await sweep_grants(lake.catalog, ROOT, SweepPlaces()) == 0


async def test_grants_on_what_was_dropped_go_when_it_cannot_be_restored_any_more(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await lake.people.add(
        "ann", lake.catalog, *on_table(T, P.TABLE_READ_DATA), *on_namespace(OTHER, P.TABLE_LIST)
    )
    before = await count(lake.catalog, GRANTS)
    await drop_table(lake.catalog, ROOT, T)
    await drop_namespace(lake.catalog, ROOT, OTHER)
    assert await sweep_grants(lake.catalog, ROOT, SweepPlaces()) == 0
    (drop_id, _), *_ = (await list_dropped(lake.catalog, ROOT, size=5)).entries
    await restore_dropped(lake.catalog, ROOT, drop_id)
    await load_table(lake.catalog, ann, T)

    await drop_table(lake.catalog, ROOT, T)
    monkeypatch.setattr(OpenCatalog, "dropped_since_us", lambda _: 2**62)
    await forget_dropped(lake.catalog, ROOT)

    assert await sweep_grants(lake.catalog, ROOT, SweepPlaces()) == 2
    assert await count(lake.catalog, GRANTS) == before - 4
    assert await sweep_grants(lake.catalog, ROOT, SweepPlaces()) == 0


async def test_assignments_of_principal_roles_that_are_gone_are_removed(lake: Lake) -> None:
    before = await count(lake.catalog, ASSIGNMENTS)
    await lake.people.add("ann", lake.catalog)
    await delete_principal_role(lake.people.identities, ROOT, "ann")

    assert await sweep_grants(lake.catalog, ROOT, SweepPlaces()) == 1
    assert await count(lake.catalog, ASSIGNMENTS) == before


async def test_what_an_interrupted_deletion_of_a_role_left_is_removed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await count(lake.catalog, GRANTS)
    tables = [Identifier(NS, f"t{number}") for number in range(4)]
    for table in tables:
        await make(lake.catalog, table)
    await lake.people.add(
        "ann", lake.catalog, *[each for table in tables for each in on_table(table, P.TABLE_LIST)]
    )

    async def die(*_: object) -> bool:
        return False

    monkeypatch.setattr(deleting, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(deleting, "remove_grants", die)
    await delete_catalog_role(lake.catalog, ROOT, "ann")

    assert await sweep_grants(lake.catalog, ROOT, SweepPlaces()) == 3
    assert await count(lake.catalog, GRANTS) == before


async def test_a_run_is_bounded_and_the_next_one_goes_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "MOST_LOOKED_AT", 2)
    names = [f"p{number}" for number in range(5)]
    for name in names:
        await lake.people.add(name, lake.catalog)
        await delete_principal_role(lake.people.identities, ROOT, name)
    places = SweepPlaces()

    swept = [await sweep_grants(lake.catalog, ROOT, places) for _ in range(4)]

    assert max(swept) <= 2
    assert sum(swept) == 5
