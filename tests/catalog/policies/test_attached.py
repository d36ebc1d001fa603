"""What is attached on the way to something: all of it, at the price of what is there (I46)."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.catalog import errors
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.policies.attached import load_attached
from cynosure.catalog.policies.mappings import MAPPINGS, THE_CATALOG, both_keys
from cynosure.catalog.policies.placing import AttachTo
from cynosure.common.errors import MissingObject
from cynosure.persistence.commit import State
from cynosure.persistence.commit.view import Entries, Overlay
from cynosure.persistence.index import encode_id_key
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.policies.made import CATALOG, NAMESPACE, NS, TABLE, applicable, attach, create, policy
from tests.catalog.tables import T, make

pytestmark = pytest.mark.anyio

WEEK_S = timedelta(days=7).total_seconds()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def directory(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path, clock=clock) as opened:
        yield opened


@pytest.fixture
async def catalog(directory: Directory, tmp_path: Path) -> OpenCatalog:
    opened = await make_catalog(directory, tmp_path)
    await create_namespace(opened, ROOT, NS, {})
    await make(opened)
    return opened


class Counting(State):
    """A state that counts what it is asked."""

    asked = 0

    async def find(self, index: str, key: bytes) -> bytes | None:
        self.asked += 1
        return await super().find(index, key)

    async def scan(self, index: str, **options) -> Entries:
        self.asked += 1
        return await super().scan(index, **options)


async def counting(catalog: OpenCatalog) -> Counting:
    state = await catalog.read()
    return Counting(state.store, state.commit_id, state.commit)


async def mappings(catalog: OpenCatalog) -> int:
    return len(await (await catalog.read()).scan(MAPPINGS, limit=1_000))


async def test_what_is_attached_comes_outermost_first_with_its_place(catalog: OpenCatalog) -> None:
    for name, to in (("on-table", TABLE), ("on-namespace", NAMESPACE), ("on-catalog", CATALOG)):
        await create(catalog, name)
        await attach(catalog, name, to)

    found = await load_attached(await catalog.read(), catalog.table(T))

    assert [(each.name, each.depth, each.on_kind, each.on) for each in found] == [
        ("on-catalog", 0, "catalog", ""),
        ("on-namespace", 1, "namespace", "ns"),
        ("on-table", 2, "table", "ns.t"),
    ]
    assert [each.path for each in found] == [policy(each.name) for each in found]
    assert found[0].target_id == found[0].mapping.target_id == THE_CATALOG
    assert all(each.mapping.policy_id == each.policy.id for each in found)


async def test_a_catalog_without_attachments_is_asked_once_per_state(catalog: OpenCatalog) -> None:
    await create(catalog, "p")
    state = await counting(catalog)

    for _ in range(3):
        assert await load_attached(state, catalog.table(T)) == ()
        assert await load_attached(state, catalog.table(Identifier(NS, "missing"))) == ()

    assert state.asked == 1


async def test_what_was_found_is_remembered_with_the_state(catalog: OpenCatalog) -> None:
    await create(catalog, "p")
    await attach(catalog, "p", NAMESPACE)
    state = await counting(catalog)
    first = await load_attached(state, catalog.table(T))
    asked = state.asked

    again = await load_attached(state, catalog.table(T))

    assert (again, state.asked) == (first, asked)
    await attach(catalog, "p", TABLE)
    assert len(await load_attached(await catalog.read(), catalog.table(T))) == 2


async def test_a_policy_that_cannot_be_found_is_an_error_and_not_nothing(catalog: OpenCatalog) -> None:
    made = await create(catalog, "p")
    await attach(catalog, "p", TABLE)
    damaged = Overlay(await catalog.read())
    damaged.add({"ids": {encode_id_key(made.id): None}})

    with pytest.raises(MissingObject):
        await load_attached(damaged, catalog.table(T))


async def test_a_table_that_is_restored_has_its_policies_again(
    catalog: OpenCatalog, clock: ManualClock
) -> None:
    await create(catalog, "p")
    await attach(catalog, "p", TABLE)
    await drop_table(catalog, ROOT, T)
    ((drop_id, _),) = (await list_dropped(catalog, ROOT, size=2)).entries
    with pytest.raises(errors.PolicyInUse):
        await drop_policy(catalog, ROOT, policy("p"))
    await clock.advance(WEEK_S / 2)
    await forget_dropped(catalog, ROOT)

    await restore_dropped(catalog, ROOT, drop_id)

    assert await applicable(catalog, "ns", "t") == [("p", False)]


async def test_a_namespace_that_is_restored_has_its_policies_again(catalog: OpenCatalog) -> None:
    await create_namespace(catalog, ROOT, ("other",), {})
    await create(catalog, "p")
    await attach(catalog, "p", AttachTo("namespace", ("other",)))
    await drop_namespace(catalog, ROOT, ("other",))
    ((drop_id, _),) = (await list_dropped(catalog, ROOT, size=2)).entries

    await restore_dropped(catalog, ROOT, drop_id)

    assert await applicable(catalog, "other") == [("p", False)]


async def test_what_is_gone_for_good_leaves_no_mapping(catalog: OpenCatalog, clock: ManualClock) -> None:
    await create_namespace(catalog, ROOT, ("other",), {})
    await create(catalog, "p")
    for to in (TABLE, AttachTo("namespace", ("other",)), CATALOG):
        await attach(catalog, "p", to)
    await drop_table(catalog, ROOT, T)
    await drop_namespace(catalog, ROOT, ("other",))
    before = await mappings(catalog)
    await clock.advance(WEEK_S + 1)

    await forget_dropped(catalog, ROOT)

    assert (before, await mappings(catalog)) == (6, 2)
    assert await applicable(catalog) == [("p", False)]


async def test_both_directions_hold_the_same(catalog: OpenCatalog) -> None:
    made = await create(catalog, "p")
    await attach(catalog, "p", CATALOG, k="v")

    entries = dict(await (await catalog.read()).scan(MAPPINGS, limit=10))

    assert set(entries) == set(both_keys(made.id, THE_CATALOG))
    assert len(set(entries.values())) == 1
