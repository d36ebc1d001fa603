"""Loading, listing, dropping and restoring generic tables, and who may."""

from pathlib import Path

import msgspec
import pytest

from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import (
    GenericTableExists,
    LocationRefused,
    NamespaceNotEmpty,
    NoSuchGenericTable,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from cynosure.catalog.explain import Place, Question, explain
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.generic.list_generic_tables import list_generic_tables
from cynosure.catalog.generic.load_generic_table import load_generic_table
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.common.errors import BadInput
from cynosure.testing.small_access import P, on_catalog, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.tables import T, make
from tests.catalog.world import DEEP, NS, Lake, open_lake

pytestmark = pytest.mark.anyio

G = Identifier(NS, "g")
ALL = Paging()


async def made(catalog: OpenCatalog, name: Identifier = G, **more) -> None:
    await create_generic_table(catalog, ROOT, CreateGenericTable(name, "delta", **more))


def names(listed: bytes) -> list[str]:
    return [each["name"] for each in msgspec.json.decode(listed)["identifiers"]]


async def test_a_generic_table_is_no_table(catalog: OpenCatalog) -> None:
    await make(catalog)
    await made(catalog)

    assert names(await list_generic_tables(catalog, ROOT, NS, ALL)) == ["g"]
    assert names(await list_tables(catalog, ROOT, NS, ALL)) == ["t"]
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, G)
    with pytest.raises(NoSuchTable):
        await drop_table(catalog, ROOT, G)
    with pytest.raises(NoSuchGenericTable, match=r"Generic table does not exist: ns\.t"):
        await load_generic_table(catalog, ROOT, T)
    with pytest.raises(NoSuchGenericTable):
        await drop_generic_table(catalog, ROOT, T)


async def test_a_list_comes_in_pages(catalog: OpenCatalog) -> None:
    for number in range(5):
        await made(catalog, Identifier(NS, f"g{number}"))

    seen: list[str] = []
    token: str | None = ""
    while token is not None:
        page = await list_generic_tables(catalog, ROOT, NS, Paging(token, 2))
        seen += names(page)
        token = msgspec.json.decode(page).get("next-page-token")

    assert seen == [f"g{number}" for number in range(5)]
    with pytest.raises(NoSuchNamespace):
        await list_generic_tables(catalog, ROOT, ("missing",), ALL)


async def test_a_dropped_one_frees_its_name_and_for_who_dropped_it_its_location(catalog: OpenCatalog) -> None:
    location = f"{catalog.base.text}/g"
    await made(catalog, location=location)

    await drop_generic_table(catalog, ROOT, G)

    with pytest.raises(NoSuchGenericTable):
        await load_generic_table(catalog, ROOT, G)
    await make(catalog, G, location=location)


async def test_a_namespace_is_not_dropped_with_one_in_it(catalog: OpenCatalog) -> None:
    await made(catalog)

    with pytest.raises(NamespaceNotEmpty):
        await drop_namespace(catalog, ROOT, NS)

    await drop_generic_table(catalog, ROOT, G)
    await drop_namespace(catalog, ROOT, NS)


async def test_what_was_dropped_is_restored_with_its_id_and_location(catalog: OpenCatalog) -> None:
    location = f"{catalog.base.text}/g"
    await made(catalog, location=location)
    before = (await load_generic_table(catalog, ROOT, G)).entity
    await drop_generic_table(catalog, ROOT, G)
    [(drop_id, dropped)] = (await list_dropped(catalog, ROOT, size=5)).entries
    assert (dropped.kind, dropped.path, dropped.location) == ("generic-table", ("ns", "g"), location)

    await restore_dropped(catalog, ROOT, drop_id, path=("ns", "again"))

    again = Identifier(NS, "again")
    assert (await load_generic_table(catalog, ROOT, again)).entity == before
    with pytest.raises(LocationRefused):
        await make(catalog, location=location)
    kinds = [each.kind for each in (await read_changes(catalog, ROOT, start="oldest")).changes]
    assert kinds[-3:] == ["generic-table-created", "generic-table-dropped", "generic-table-restored"]


async def test_it_is_not_restored_over_a_table_and_no_table_over_it(catalog: OpenCatalog) -> None:
    await made(catalog)
    await drop_generic_table(catalog, ROOT, G)
    [(generic, _)] = (await list_dropped(catalog, ROOT, size=5)).entries
    await make(catalog, G)

    with pytest.raises(TableExists):
        await restore_dropped(catalog, ROOT, generic)

    await drop_table(catalog, ROOT, G)
    table = (await list_dropped(catalog, ROOT, size=5)).entries[-1][0]
    await restore_dropped(catalog, ROOT, generic)
    with pytest.raises(GenericTableExists):
        await restore_dropped(catalog, ROOT, table)


async def test_credentials_are_to_write_for_who_may_and_to_read_for_the_others(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        vendor = MemoryVendor()
        giving = vending(lake.catalog, vendor)
        await made(lake.catalog, location=f"{lake.catalog.base.text}/g")
        writer = await lake.people.add("writer", lake.catalog, *on_table(G, P.TABLE_WRITE_DATA))
        reader = await lake.people.add("reader", lake.catalog, *on_table(G, P.TABLE_READ_DATA))
        looker = await lake.people.add("looker", lake.catalog, *on_table(G, P.TABLE_READ_PROPERTIES))

        await load_generic_table(giving, writer, G, is_delegated=True)
        await load_generic_table(giving, reader, G, is_delegated=True)
        with pytest.raises(AccessDenied):
            await load_generic_table(giving, looker, G, is_delegated=True)

        assert [scope.is_writable for scope, _ in vendor.minted] == [True, False]
        assert [subject.principal for _, subject in vendor.minted] == ["writer", "reader"]
        assert (await load_generic_table(giving, looker, G)).access == ()


async def test_the_location_is_validated_again_whenever_credentials_are_given(catalog: OpenCatalog) -> None:
    """I70."""
    location = f"{catalog.base.text}/g"
    await made(catalog, location=location)
    tightened = msgspec.structs.replace(
        catalog.entity,
        base_location=f"{catalog.base.text}/inner",
        storage=msgspec.structs.replace(
            catalog.entity.storage, allowed_locations=(f"{catalog.base.text}/inner",)
        ),
    )
    vendor = MemoryVendor()
    giving = vending(OpenCatalog(catalog.realm, tightened, catalog.shared, catalog.storage), vendor)

    with pytest.raises(LocationRefused):
        await load_generic_table(giving, ROOT, G, is_delegated=True)

    assert vendor.minted == []


async def test_what_has_no_location_or_no_token_service_gives_no_access(catalog: OpenCatalog) -> None:
    await made(catalog)
    await made(catalog, Identifier(NS, "h"), location=f"{catalog.base.text}/h")

    with pytest.raises(BadInput, match="without a base location"):
        await load_generic_table(vending(catalog, MemoryVendor()), ROOT, G, is_delegated=True)
    with pytest.raises(BadInput, match="gives no credentials"):
        await load_generic_table(catalog, ROOT, Identifier(NS, "h"), is_delegated=True)


async def test_privileges_of_tables_are_granted_on_it_by_name(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await made(lake.catalog)
        ann = await lake.people.add("ann", lake.catalog, *on_table(G, P.TABLE_READ_PROPERTIES))

        await load_generic_table(lake.catalog, ann, G)

        [grant] = (await list_grants(lake.catalog, ROOT, "ann")).grants
        assert (grant.kind, grant.namespace, grant.name) == ("table", NS, "g")
        await lake.people.revoke("ann", lake.catalog, *on_table(G, P.TABLE_READ_PROPERTIES))
        with pytest.raises(AccessDenied):
            await load_generic_table(lake.catalog, ann, G)
        with pytest.raises(NoSuchTable):
            await lake.people.grant("ann", lake.catalog, *on_table(Identifier(NS, "no"), P.TABLE_LIST))


async def test_grants_come_back_with_a_restored_one_and_not_with_a_new_one(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await made(lake.catalog)
        ann = await lake.people.add("ann", lake.catalog, *on_table(G, P.TABLE_READ_PROPERTIES))
        await drop_generic_table(lake.catalog, ROOT, G)
        [(drop_id, _)] = (await list_dropped(lake.catalog, ROOT, size=1)).entries

        await made(lake.catalog)
        with pytest.raises(AccessDenied):
            await load_generic_table(lake.catalog, ann, G)

        await drop_generic_table(lake.catalog, ROOT, G)
        await restore_dropped(lake.catalog, ROOT, drop_id)
        await load_generic_table(lake.catalog, ann, G)


async def test_lists_show_what_one_may_see(tmp_path: Path) -> None:
    async with open_lake(tmp_path, AuthSettings(filter_lists=True)) as lake:
        for name in ("a", "b"):
            await made(lake.catalog, Identifier(NS, name))
        ann = await lake.people.add(
            "ann", lake.catalog, *on_table(Identifier(NS, "b"), P.TABLE_READ_PROPERTIES)
        )

        assert names(await list_generic_tables(lake.catalog, ann, NS, ALL)) == ["b"]
        with pytest.raises(AccessDenied):
            await list_generic_tables(lake.catalog, ann, DEEP, ALL)


async def test_where_existence_is_hidden_an_unseen_one_is_missing(tmp_path: Path) -> None:
    async with open_lake(tmp_path, AuthSettings(hide_existence=True)) as lake:
        await made(lake.catalog)
        nobody = await lake.people.add("nobody", lake.catalog)
        seer = await lake.people.add("seer", lake.catalog, *on_table(G, P.TABLE_LIST))

        for missing in (G, Identifier(NS, "missing")):
            with pytest.raises(NoSuchGenericTable) as refused:
                await load_generic_table(lake.catalog, nobody, missing)
            assert str(refused.value) == f"Generic table does not exist: {missing}"
        with pytest.raises(AccessDenied):
            await load_generic_table(lake.catalog, seer, G)


async def ask(lake: Lake, operation: str, name: str, **more) -> bool:
    question = Question(
        operation=operation, target=Place(catalog="lake", namespace=NS, table=name, **more), principal="ann"
    )
    return (await explain(lake.directory, lake.people.identities, ROOT, question)).is_allowed


async def test_access_to_it_is_explained(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await made(lake.catalog)
        await lake.people.add("ann", lake.catalog, *on_table(G, P.TABLE_READ_DATA))

        assert await ask(lake, "load-generic-table", "g")
        assert await ask(lake, "load-generic-table-to-read", "g")
        assert not await ask(lake, "load-generic-table-to-write", "g")
        assert not await ask(lake, "grant-on-table", "g", catalog_role="ann")
        with pytest.raises(NoSuchGenericTable):
            await ask(lake, "load-generic-table", "t")
        with pytest.raises(NoSuchTable):
            await ask(lake, "load-table", "g")


async def test_a_wider_right_covers_it(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await made(lake.catalog)
        ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.TABLE_READ_PROPERTIES))

        await load_generic_table(lake.catalog, ann, G)
        with pytest.raises(AccessDenied):
            await drop_generic_table(lake.catalog, ann, G)


async def test_changing_the_catalog_does_not_touch_it(catalog: OpenCatalog, directory: Directory) -> None:
    await made(catalog)

    await update_catalog(directory, ROOT, "lake", CatalogUpdate(set_properties={"k": "v"}))

    reopened = await directory.open(catalog.realm, "lake")
    assert (await load_generic_table(reopened, ROOT, G)).entity.format == "delta"
