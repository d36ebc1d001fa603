"""External catalogs: another catalog owns their tables."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.operations import OPERATIONS
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import DelegationOff, NoSuchTable, OwnedElsewhere
from cynosure.catalog.facade import VENDING
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.load_generic_table import load_generic_table
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.export_table import export_table
from cynosure.catalog.operations.load_table import load_table, load_table_for_data
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.register_view import register_view
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.rename_view import rename_view
from cynosure.catalog.operations.replace_view import ViewChange, replace_view
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.table_changes import TableChange
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.external import make_external, view_file, write_metadata
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.tables import properties, requirements, updates
from tests.catalog.world import VERSION, Lake, open_lake

pytestmark = pytest.mark.anyio

NS = ("ns",)
T, V, NEW = (Identifier(NS, name) for name in ("t", "v", "new"))


class World(NamedTuple):
    lake: Lake
    catalog: OpenCatalog
    """An external one, with the namespace `ns`, a registered table `t` and view `v`."""

    async def reopened(self) -> OpenCatalog:
        return await self.lake.directory.open(DEFAULT_REALM, "ext")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_lake(tmp_path) as lake:
        catalog = await make_external(lake.directory, tmp_path)
        await create_namespace(catalog, ROOT, NS, {})
        await register_table(catalog, ROOT, T, await write_metadata(catalog))
        await register_view(catalog, ROOT, V, await view_file(catalog))
        yield World(lake, catalog)


SET = updates(properties(k="v"))
CREATE = TableChange(
    NEW, requirements({"type": "assert-create"}), updates({"action": "assign-uuid", "uuid": "x"})
)

REFUSED: dict[str, Callable[[OpenCatalog, Caller], Awaitable[object]]] = {
    "create": lambda c, who: create_table(c, who, CreateTable(NS, "new", SCHEMA)),
    "stage": lambda c, who: create_table(c, who, CreateTable(NS, "new", SCHEMA, is_staged=True)),
    "commit": lambda c, who: commit_table(c, who, TableChange(T, [], SET)),
    "commit staged": lambda c, who: commit_table(c, who, CREATE),
    "transaction": lambda c, who: commit_transaction(c, who, [TableChange(T, [], SET)]),
    "create in transaction": lambda c, who: commit_transaction(c, who, [CREATE]),
    "rename": lambda c, who: rename_table(c, who, T, NEW),
    "purge": lambda c, who: drop_table(c, who, T, is_purge_requested=True),
    "export": lambda c, who: export_table(c, who, T),
    "create view": lambda c, who: create_view(c, who, CreateView(NEW, SCHEMA, VERSION)),
    "replace view": lambda c, who: replace_view(c, who, ViewChange(V, [], [])),
    "rename view": lambda c, who: rename_view(c, who, V, NEW),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_its_owner_must_do_is_refused_to_those_who_may(world: World, what: str) -> None:
    """I72."""
    ann = await world.lake.people.add("ann", world.catalog, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    nobody = await world.lake.people.add("nobody", world.catalog)
    before = await world.lake.heads()

    for who in (ROOT, ann):
        with pytest.raises(OwnedElsewhere):
            await REFUSED[what](world.catalog, who)
    with pytest.raises(AccessDenied):
        await REFUSED[what](world.catalog, nobody)

    assert await world.lake.heads() == before


async def test_tables_and_views_are_read_and_taken_off_the_list(world: World) -> None:
    catalog = world.catalog
    assert (await load_table(catalog, ROOT, T)).metadata_location

    await drop_table(catalog, ROOT, T)
    await drop_view(catalog, ROOT, V)
    await drop_namespace(catalog, ROOT, NS)

    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)


async def test_a_refusal_comes_again_when_the_permission_is_remembered(world: World) -> None:
    """I72."""
    ann = await world.lake.people.add("ann", world.catalog, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    heads = world.catalog.shared.persistence.heads
    principals = realm_reference(DEFAULT_REALM, "principals")

    for _ in range(3):
        heads.read_ahead((principals, principals, *world.catalog.likely_references))
        with pytest.raises(OwnedElsewhere):
            await create_table(world.catalog, ann, CreateTable(NS, "new", SCHEMA, is_staged=True))


@pytest.mark.parametrize("name", VENDING)
async def test_access_to_files_is_given_unless_the_catalog_says_otherwise(world: World, name: str) -> None:
    location = f"{world.catalog.base.text}/g"
    generic = Identifier(NS, "g")
    await create_generic_table(world.catalog, ROOT, CreateGenericTable(generic, "csv", location))
    assert (await load_table_for_data(world.catalog, ROOT, T, delegation=ANY_WAY)).is_writable
    vendor = MemoryVendor()
    giving = vending(world.catalog, vendor)
    assert (await load_generic_table(giving, ROOT, generic, is_delegated=True)).access

    await update_catalog(world.lake.directory, ROOT, "ext", CatalogUpdate(set_properties={name: "false"}))

    closed = vending(await world.reopened(), vendor)
    with pytest.raises(DelegationOff, match=r"enable\.credential\.vending"):
        await load_table_for_data(closed, ROOT, T, delegation=ANY_WAY)
    with pytest.raises(DelegationOff):
        await load_generic_table(closed, ROOT, generic, is_delegated=True)
    wanted = CreateGenericTable(Identifier(NS, "h"), "csv", f"{location}2")
    with pytest.raises(DelegationOff):
        await create_generic_table(closed, ROOT, wanted, is_delegated=True)
    with pytest.raises(DelegationOff):
        await register_table(closed, ROOT, NEW, "file:///x", delegation=ANY_WAY)
    assert len(vendor.minted) == 1
    await load_table(closed, ROOT, T)
    await load_generic_table(closed, ROOT, generic)


async def test_the_property_means_nothing_to_an_internal_catalog(world: World) -> None:
    lake = world.lake
    await update_catalog(lake.directory, ROOT, "lake", CatalogUpdate(set_properties={VENDING[0]: "false"}))
    internal = await lake.directory.open(DEFAULT_REALM, "lake")

    assert (await load_table_for_data(internal, ROOT, T, delegation=ANY_WAY)).is_writable


def test_every_operation_that_gives_access_is_known_by_its_name() -> None:
    giving = {
        name
        for name, operation in OPERATIONS.items()
        if {P.TABLE_READ_DATA, P.TABLE_WRITE_DATA}.intersection(*operation.needs)
    }
    ends = ("-to-read", "-to-write", "-with-credentials", "-with-read-credentials")
    others = {name for name in giving if not name.endswith(ends)}

    assert others == {
        "purge-table",
        "order-maintenance",
        # Of what was dropped to be purged: in an external catalog there is none.
        "list-tombstones",
        "load-tombstone",
        "begin-purging",
        "end-purging",
        "report-scan",
        "report-commit",
        "plan-scan",
        "table-statistics-with-values",
    }
