"""Commits to one table: requirements, versions, metadata files (I25, I26, I27)."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from cynosure.catalog.errors import LocationRefused, NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import RequirementFailed
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, change, decoded, make, properties, snapshot

pytestmark = pytest.mark.anyio


def files_of(answer_location: str) -> list[Path]:
    return sorted(Path(answer_location.removeprefix("file://")).parent.glob("*.metadata.json"))


async def test_a_commit_makes_a_new_version_with_its_file_and_logs_the_previous_one(catalog: OpenCatalog):
    created = await make(catalog)
    changed = await change(catalog, properties(k="v"))

    metadata = decoded(changed)
    assert metadata["properties"]["k"] == "v"
    assert [each["metadata-file"] for each in metadata["metadata-log"]] == [created.metadata_location]
    written = Path(changed.metadata_location.removeprefix("file://")).read_bytes()
    assert written == changed.metadata
    assert changed.etag != created.etag
    assert (await load_table(catalog, ROOT, T)).metadata == changed.metadata


async def test_a_change_that_changes_nothing_makes_no_version(catalog: OpenCatalog):
    await make(catalog)
    first = await change(catalog, properties(k="v"))
    again = await change(catalog, properties(k="v"))

    assert again.metadata_location == first.metadata_location
    assert len(files_of(first.metadata_location)) == 2


async def test_a_failed_requirement_changes_nothing_and_leaves_no_file(catalog: OpenCatalog):
    created = await make(catalog)

    with pytest.raises(RequirementFailed, match=r"^Requirement failed: UUID does not match"):
        await change(
            catalog,
            properties(k="v"),
            requires=({"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},),
        )

    assert (await load_table(catalog, ROOT, T)).etag == created.etag
    assert len(files_of(created.metadata_location)) == 1


async def test_of_many_racing_commits_with_one_requirement_one_wins_and_the_losers_files_go(
    catalog: OpenCatalog,
):
    created = await make(catalog)
    requires = ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},)

    outcomes = await asyncio.gather(
        *(change(catalog, *snapshot(number, at=created), requires=requires) for number in range(1, 9)),
        return_exceptions=True,
    )

    won = [each for each in outcomes if not isinstance(each, BaseException)]
    assert len(won) == 1
    assert all(isinstance(each, RequirementFailed) for each in outcomes if isinstance(each, BaseException))
    await catalog.shared.background.close()
    assert {each.as_uri() for each in files_of(created.metadata_location)} == {
        created.metadata_location,
        won[0].metadata_location,
    }


async def test_racing_commits_without_a_conflict_all_succeed_each_with_its_own_version(catalog: OpenCatalog):
    await make(catalog)

    answers = await asyncio.gather(*(change(catalog, properties(**{f"k{n}": "v"})) for n in range(16)))

    last = decoded(await load_table(catalog, ROOT, T))
    assert {name for name in last["properties"] if name.startswith("k")} == {f"k{n}" for n in range(16)}
    assert len(last["metadata-log"]) == 16
    assert len({each.metadata_location for each in answers}) == 16
    logged = {each["metadata-file"] for each in last["metadata-log"]}
    assert all(Path(each.removeprefix("file://")).exists() for each in logged)


async def test_a_missing_table_is_said_to_be_missing(catalog: OpenCatalog):
    with pytest.raises(NoSuchTable, match=r"^Table does not exist: ns\.other"):
        await change(catalog, properties(k="v"), table=Identifier(("ns",), "other"))


async def test_previous_versions_are_limited_and_deleted_where_the_table_asks_for_it(catalog: OpenCatalog):
    created = await make(
        catalog,
        properties={
            "write.metadata.previous-versions-max": "2",
            "write.metadata.delete-after-commit.enabled": "true",
        },
    )
    for number in range(6):
        last = await change(catalog, properties(k=str(number)))
    await catalog.shared.background.close()

    assert len(decoded(last)["metadata-log"]) == 2
    assert len(files_of(created.metadata_location)) == 3


async def test_a_packed_metadata_file_is_named_and_written_as_such(catalog: OpenCatalog):
    created = await make(catalog, properties={"write.metadata.compression-codec": "gzip"})

    assert created.metadata_location.endswith(".gz.metadata.json")
    packed = Path(created.metadata_location.removeprefix("file://")).read_bytes()
    assert json.loads(gzip.decompress(packed)) == decoded(created)


async def test_an_unknown_compression_is_refused_and_nothing_is_made(catalog: OpenCatalog):
    with pytest.raises(BadInput, match="compression"):
        await make(catalog, properties={"write.metadata.compression-codec": "zstd9"})
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-location", "location": "file:///etc/iceberg"},
        properties(**{"write.metadata.path": "file:///etc/iceberg"}),
        properties(**{"write.data.path": "s3://other/bucket"}),
    ],
)
async def test_locations_outside_the_catalog_are_refused(catalog: OpenCatalog, update: dict):
    created = await make(catalog)
    with pytest.raises(LocationRefused):
        await change(catalog, update)
    assert (await load_table(catalog, ROOT, T)).etag == created.etag


async def test_a_moved_table_claims_the_new_location_and_keeps_the_old_one_where_its_files_are(
    catalog: OpenCatalog,
):
    created = await make(catalog)
    old = decoded(created)["location"]
    new = catalog.base.child("moved").text
    await change(catalog, {"action": "set-location", "location": new})

    with pytest.raises(LocationRefused):
        await make(catalog, Identifier(("ns",), "inside"), location=f"{new}/below")
    with pytest.raises(LocationRefused):
        await make(catalog, Identifier(("ns",), "heir"), location=old)


async def test_many_snapshots_are_kept_in_chunks_of_which_one_commit_writes_the_newest(catalog: OpenCatalog):
    created = await make(catalog)
    for number in range(1, 60):
        last = await change(catalog, *snapshot(number, at=created, parent=number - 1 or None))

    metadata = decoded(last)
    assert [each["snapshot-id"] for each in metadata["snapshots"]] == list(range(1, 60))
    assert [each["snapshot-id"] for each in metadata["snapshot-log"]] == list(range(1, 60))
    catalog.shared.tables.clear()
    assert decoded(await load_table(catalog, ROOT, T)) == metadata
    few = decoded(await load_table(catalog, ROOT, T, snapshots="refs"))
    assert [each["snapshot-id"] for each in few["snapshots"]] == [59]
    catalog.shared.tables.clear()
    assert decoded(await load_table(catalog, ROOT, T, snapshots="refs")) == few


async def test_a_table_whose_file_vanished_still_loads_and_takes_commits(catalog: OpenCatalog):
    created = await make(catalog)
    Path(created.metadata_location.removeprefix("file://")).unlink()
    catalog.shared.tables.clear()

    assert (await load_table(catalog, ROOT, T)).metadata == created.metadata
    assert decoded(await change(catalog, properties(k="v")))["properties"]["k"] == "v"


async def test_fields_that_nobody_knows_come_back_after_commits_and_from_the_store(catalog: OpenCatalog):
    """I28."""
    created = await make(catalog)
    add, set_ref = snapshot(1, at=created)
    add["snapshot"]["x-future"] = {"deep": [1, {"deeper": None}]}
    set_ref["x-note"] = "not part of the metadata"
    schema = {
        "type": "struct",
        "schema-id": 1,
        "x-future": True,
        "fields": [{"id": 1, "name": "id", "required": True, "type": "long", "x-future": "é"}],
    }
    await change(catalog, {"action": "add-schema", "schema": schema, "last-column-id": 2}, add, set_ref)
    for number in range(2, 40):
        await change(catalog, *snapshot(number, at=created, parent=number - 1))
    catalog.shared.tables.clear()

    metadata = decoded(await load_table(catalog, ROOT, T))

    assert metadata["snapshots"][0]["x-future"] == {"deep": [1, {"deeper": None}]}
    assert metadata["schemas"][1]["x-future"] is True
    assert metadata["schemas"][1]["fields"][0]["x-future"] == "é"
