import asyncio

import pytest

from cynosure.catalog.errors import (
    GenericTableExists,
    LocationRefused,
    NoSuchGenericTable,
    NoSuchNamespace,
    RenameTargetTaken,
    TableExists,
    ViewExists,
)
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.generic import create_generic_table as create_module
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.generic.load_generic_table import load_generic_table
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.rename_view import rename_view
from cynosure.common.errors import BadInput, OutcomeUnknown, TooLarge, Unavailable
from cynosure.storage.access.ports import Scope, Subject, Vended
from cynosure.storage.errors import StorageRefused
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.tables import make
from tests.catalog.world import VERSION

pytestmark = pytest.mark.anyio

NS = ("ns",)
G = Identifier(NS, "g")


def delta(name: Identifier = G, **more) -> CreateGenericTable:
    return CreateGenericTable(name, "delta", **more)


async def test_what_was_created_is_loaded(catalog: OpenCatalog) -> None:
    location = f"{catalog.base.text}/else/where/"

    made = await create_generic_table(
        catalog, ROOT, delta(location=location, doc="raw events", properties={"k": "v"})
    )

    entity = (await load_generic_table(catalog, ROOT, G)).entity
    assert entity == made.entity
    assert (entity.format, entity.location, entity.doc) == ("delta", location, "raw events")
    assert entity.properties == {"k": "v"}
    assert made.access == ()


async def test_without_a_location_none_is_claimed(catalog: OpenCatalog) -> None:
    await create_generic_table(catalog, ROOT, delta())

    state = await catalog.read()
    assert await state.scan("locations", limit=5) == []
    assert (await load_generic_table(catalog, ROOT, G)).entity.location == ""


@pytest.mark.parametrize("where", ["/g", "/g/below", ""])
async def test_its_location_is_nobody_elses(catalog: OpenCatalog, where: str) -> None:
    """I70."""
    await create_generic_table(catalog, ROOT, delta(location=f"{catalog.base.text}/g"))

    taken = f"{catalog.base.text}{where}"
    with pytest.raises(LocationRefused):
        await create_generic_table(catalog, ROOT, delta(Identifier(NS, "h"), location=taken))
    with pytest.raises(LocationRefused):
        await make(catalog, location=taken)


async def test_the_location_of_a_table_is_refused(catalog: OpenCatalog) -> None:
    """I70."""
    await make(catalog, location=f"{catalog.base.text}/t")

    with pytest.raises(LocationRefused):
        await create_generic_table(catalog, ROOT, delta(location=f"{catalog.base.text}/t"))


async def test_of_two_at_once_for_one_location_one_is_refused(catalog: OpenCatalog) -> None:
    """I70."""
    location = f"{catalog.base.text}/same"
    wanted = [delta(Identifier(NS, f"g{number}"), location=location) for number in range(8)]

    outcomes = await asyncio.gather(
        *(create_generic_table(catalog, ROOT, each) for each in wanted), return_exceptions=True
    )

    assert sum(isinstance(each, LocationRefused) for each in outcomes) == len(wanted) - 1


@pytest.mark.parametrize("location", ["file:///etc", "s3://bucket/x", "file:///"])
async def test_a_location_outside_is_refused(catalog: OpenCatalog, location: str) -> None:
    """I70."""
    with pytest.raises(LocationRefused) as refused:
        await create_generic_table(catalog, ROOT, delta(location=location))

    assert refused.value.details["field"] == "base-location"


async def test_names_are_shared_with_tables_and_views(catalog: OpenCatalog) -> None:
    table, view = Identifier(NS, "t"), Identifier(NS, "v")
    await make(catalog, table)
    await create_view(catalog, ROOT, CreateView(view, SCHEMA, VERSION))
    await create_generic_table(catalog, ROOT, delta())

    for taken, error in ((table, TableExists), (view, ViewExists), (G, GenericTableExists)):
        with pytest.raises(error):
            await create_generic_table(catalog, ROOT, delta(taken))
    with pytest.raises(GenericTableExists) as refused:
        await create_table(catalog, ROOT, CreateTable(NS, "g", SCHEMA))
    assert str(refused.value) == "Generic table with same name already exists: ns.g"
    with pytest.raises(GenericTableExists):
        await create_view(catalog, ROOT, CreateView(G, SCHEMA, VERSION))
    with pytest.raises(RenameTargetTaken, match=r"to ns\.g\. Generic table already exists"):
        await rename_table(catalog, ROOT, table, G)
    with pytest.raises(RenameTargetTaken):
        await rename_view(catalog, ROOT, view, G)


async def test_a_name_is_given_once_however_many_want_it(catalog: OpenCatalog) -> None:
    outcomes = await asyncio.gather(
        *(create_generic_table(catalog, ROOT, delta()) for _ in range(4)),
        *(create_table(catalog, ROOT, CreateTable(NS, "g", SCHEMA)) for _ in range(4)),
        return_exceptions=True,
    )

    errors = [each for each in outcomes if isinstance(each, BaseException)]
    assert len(errors) == 7
    assert all(isinstance(each, (TableExists, GenericTableExists)) for each in errors)


async def test_its_namespace_must_exist(catalog: OpenCatalog) -> None:
    with pytest.raises(NoSuchNamespace):
        await create_generic_table(catalog, ROOT, delta(Identifier(("missing",), "g")))


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"format": " "}, "format"),
        ({"format": "x" * 257}, "format"),
        ({"properties": {"polaris.internal": "x"}}, "properties"),
        ({"properties": {"": "x"}}, "properties"),
        ({"properties": {"k": "x" * 10_000_000}}, "properties"),
        ({"doc": "x" * 10_000_000}, "doc"),
        ({"location": "ftp://x/y"}, "base-location"),
        ({"location": "file:///a/../b"}, "base-location"),
    ],
)
async def test_what_cannot_be_stored_is_refused(catalog: OpenCatalog, more: dict, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        await create_generic_table(catalog, ROOT, CreateGenericTable(G, **{"format": "csv", **more}))

    assert refused.value.field == field
    assert not isinstance(refused.value, TooLarge)


async def test_the_feed_tells(catalog: OpenCatalog) -> None:
    await create_generic_table(catalog, ROOT, delta())

    changes = (await read_changes(catalog, ROOT, start="oldest")).changes
    assert changes[-1].kind == "generic-table-created"


async def test_credentials_are_made_for_its_location_after_it_is_claimed(catalog: OpenCatalog) -> None:
    """I70."""
    vendor = MemoryVendor()
    giving = vending(catalog, vendor)
    location = f"{catalog.base.text}/g"

    made = await create_generic_table(giving, ROOT, delta(location=location), is_delegated=True)

    [(scope, subject)] = vendor.minted
    assert [each.text for each in scope.locations] == [location]
    assert scope.is_writable
    assert (subject.table, subject.catalog) == ("ns.g", "lake")
    [access] = made.access
    assert access.prefix == location
    assert access.config == {"client.region": "eu", "s3.session-token": "1"}
    assert "session-token" not in repr(access)


async def test_nothing_is_minted_for_what_is_not_created(catalog: OpenCatalog) -> None:
    vendor = MemoryVendor()
    giving = vending(catalog, vendor)
    location = f"{catalog.base.text}/g"
    await create_generic_table(giving, ROOT, delta(location=location))

    for wanted in (delta(location=f"{location}2"), delta(Identifier(NS, "h"), location=location)):
        with pytest.raises((GenericTableExists, LocationRefused)):
            await create_generic_table(giving, ROOT, wanted, is_delegated=True)

    assert vendor.minted == []


async def test_access_that_cannot_be_given_is_refused_before_anything_is_made(catalog: OpenCatalog) -> None:
    giving = vending(catalog, MemoryVendor())
    before = (await catalog.read()).commit_id

    with pytest.raises(BadInput, match="without a base location"):
        await create_generic_table(giving, ROOT, delta(), is_delegated=True)
    with pytest.raises(BadInput, match="gives no credentials"):
        await create_generic_table(catalog, ROOT, delta(location=f"{catalog.base.text}/g"), is_delegated=True)

    assert (await catalog.read()).commit_id == before


async def test_when_no_credentials_come_the_table_goes_again(catalog: OpenCatalog) -> None:
    giving = vending(catalog, MemoryVendor(refused="/g$"))
    location = f"{catalog.base.text}/g"

    with pytest.raises(StorageRefused):
        await create_generic_table(giving, ROOT, delta(location=location), is_delegated=True)

    with pytest.raises(NoSuchGenericTable):
        await load_generic_table(catalog, ROOT, G)
    assert [each.kind for _, each in (await list_dropped(catalog, ROOT, size=5)).entries] == ["generic-table"]
    await create_generic_table(catalog, ROOT, delta(location=location))


async def test_a_table_that_somebody_made_meanwhile_stays(catalog: OpenCatalog) -> None:
    class Slow(MemoryVendor):
        async def mint(self, scope: Scope, subject: Subject) -> Vended:
            await drop_generic_table(catalog, ROOT, G)
            await create_generic_table(catalog, ROOT, CreateGenericTable(G, "csv"))
            raise StorageRefused("Too late")

    with pytest.raises(StorageRefused):
        await create_generic_table(
            vending(catalog, Slow()), ROOT, delta(location=f"{catalog.base.text}/g"), is_delegated=True
        )

    assert (await load_generic_table(catalog, ROOT, G)).entity.format == "csv"


async def test_when_it_cannot_be_undone_nobody_says_that_nothing_was_done(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise Unavailable("The database does not answer")

    monkeypatch.setattr(create_module, "commit_part", fail)

    with pytest.raises(OutcomeUnknown):
        await create_generic_table(
            vending(catalog, MemoryVendor(refused="/g$")),
            ROOT,
            delta(location=f"{catalog.base.text}/g"),
            is_delegated=True,
        )

    assert (await load_generic_table(catalog, ROOT, G)).entity.format == "delta"
