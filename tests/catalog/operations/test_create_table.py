"""Creating tables, staged or not, and where they go (I27)."""

import asyncio
from pathlib import Path

import pytest

from cynosure.catalog.errors import LocationRefused, NoSuchNamespace, NoSuchTable, TableExists
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.load_table import load_table, table_exists
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.table_changes import TableChange
from cynosure.iceberg.errors import InvalidMetadata, RequirementFailed
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, decoded, make, requirements, updates

pytestmark = pytest.mark.anyio


async def test_a_created_table_loads_as_it_was_answered_and_has_its_file(catalog: OpenCatalog):
    created = await make(catalog, properties={"owner": "me"})

    loaded = await load_table(catalog, ROOT, T)
    assert loaded.load_body() == created.load_body()
    assert decoded(loaded)["properties"]["owner"] == "me"
    assert Path(created.metadata_location.removeprefix("file://")).read_bytes() == created.metadata
    await table_exists(catalog, ROOT, T)


async def test_a_name_can_be_created_once_however_many_try(catalog: OpenCatalog):
    outcomes = await asyncio.gather(*(make(catalog) for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(each, TableExists) for each in outcomes) == 4
    assert sum(not isinstance(each, BaseException) for each in outcomes) == 1
    await catalog.shared.background.close()
    assert len(list(Path(catalog.base.text.removeprefix("file://")).rglob("*.metadata.json"))) == 1


async def test_a_renamed_table_and_its_names_heir_have_locations_of_their_own(catalog: OpenCatalog):
    first = await make(catalog)
    await rename_table(catalog, ROOT, T, Identifier(("ns",), "moved"))
    second = await make(catalog)

    assert decoded(first)["location"] != decoded(second)["location"]
    moved = await load_table(catalog, ROOT, Identifier(("ns",), "moved"))
    assert decoded(moved)["table-uuid"] == decoded(first)["table-uuid"]


@pytest.mark.parametrize("name", ["a/b", "..x", "a.b", "ü", "x" * 256, "per%cent", " "])
async def test_odd_names_get_harmless_directories(catalog: OpenCatalog, name: str):
    created = await make(catalog, Identifier(("ns",), name))

    inside = decoded(created)["location"].removeprefix(catalog.base.text + "/ns/")
    assert "/" not in inside
    assert inside.isascii()
    await table_exists(catalog, ROOT, Identifier(("ns",), name))


async def test_a_staged_table_is_answered_and_not_kept(catalog: OpenCatalog):
    staged = await make(catalog, is_staged=True)

    assert staged.metadata_location is None
    assert b"metadata-location" not in staged.load_body()
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)


def creation(staged: dict) -> list:
    return updates(
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": staged["format-version"]},
        {"action": "add-schema", "schema": staged["schemas"][0], "last-column-id": staged["last-column-id"]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": staged["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
        {"action": "set-properties", "updates": {"k": "v"}},
    )


async def test_a_staged_table_is_created_by_the_commit_that_requires_its_absence(catalog: OpenCatalog):
    staged = decoded(await make(catalog, is_staged=True))
    change = TableChange(T, requirements({"type": "assert-create"}), creation(staged))

    created = decoded(await commit_table(catalog, ROOT, change))

    assert created["table-uuid"] == staged["table-uuid"]
    assert created["properties"]["k"] == "v"
    with pytest.raises(RequirementFailed, match="table already exists"):
        await commit_table(catalog, ROOT, change)


async def test_a_missing_namespace_is_named(catalog: OpenCatalog):
    with pytest.raises(NoSuchNamespace, match=r"^Namespace does not exist: other\.deep"):
        await make(catalog, Identifier(("other", "deep"), "t"))


@pytest.mark.parametrize("below", ["", "/below", "/below/deeper"])
async def test_locations_of_two_tables_never_overlap(catalog: OpenCatalog, below: str):
    place = catalog.base.child("place").text
    await make(catalog, location=place + below)
    with pytest.raises(LocationRefused, match="overlaps"):
        await make(catalog, Identifier(("ns",), "other"), location=place)
    with pytest.raises(LocationRefused, match="overlaps"):
        await make(catalog, Identifier(("ns",), "other"), location=place + below + "/x")
    await make(catalog, Identifier(("ns",), "neighbour"), location=place + "s")


async def test_of_racing_creations_at_nested_locations_one_wins(catalog: OpenCatalog):
    place = catalog.base.child("place").text
    outcomes = await asyncio.gather(
        *(make(catalog, Identifier(("ns",), f"t{n}"), location=place + "/x" * n) for n in range(4)),
        return_exceptions=True,
    )
    assert sum(not isinstance(each, BaseException) for each in outcomes) == 1


async def test_an_invalid_schema_is_refused_naming_the_field(catalog: OpenCatalog):
    with pytest.raises(InvalidMetadata) as refused:
        await make(catalog, properties={"format-version": "9"})
    assert refused.value.field == "properties.format-version"
