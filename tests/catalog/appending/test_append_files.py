"""Appends through the endpoint's operation: ids are ours, nothing conflicts, some share a commit (I84)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import BadInput
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, change, decoded, make, properties

pytestmark = pytest.mark.anyio


async def where(catalog: OpenCatalog) -> str:
    return str(decoded(await load_table(catalog, ROOT, T))["location"])


def file(location: str, name: str, **fields: Any) -> dict[str, Any]:
    return {
        "content": "data",
        "file-path": f"{location}/data/{name}.parquet",
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": 1000,
        "record-count": 10,
        **fields,
    }


async def append(catalog: OpenCatalog, *names: str, **fields: Any) -> Appended:
    location = await where(catalog)
    files = [file(location, name) for name in names]
    return await append_files(catalog, ROOT, T, Addition(data_files=files, **fields))


async def planned(catalog: OpenCatalog) -> list[str]:
    answer = await load_table(catalog, ROOT, T)
    table = StaticTable.from_metadata(str(answer.metadata_location))
    return sorted(Path(task.file.file_path).stem for task in table.scan().plan_files())


async def test_an_append_makes_a_snapshot_that_others_read(catalog: OpenCatalog):
    await make(catalog)
    first = await append(catalog, "a", "b", summary={"job": "7"})
    second = await append(catalog, "c")

    metadata = decoded(await load_table(catalog, ROOT, T))
    assert [each["snapshot-id"] for each in metadata["snapshots"]] == [first.snapshot_id, second.snapshot_id]
    assert metadata["current-snapshot-id"] == second.snapshot_id
    assert metadata["snapshots"][1]["parent-snapshot-id"] == first.snapshot_id
    assert (first.sequence_number, second.sequence_number) == (1, 2)
    assert metadata["snapshots"][0]["summary"]["job"] == "7"
    assert metadata["snapshots"][1]["summary"]["total-records"] == "30"
    assert (first.added_files, first.added_records) == (2, 20)
    assert await planned(catalog) == ["a", "b", "c"]


async def test_appends_at_once_share_commits_and_none_is_lost(catalog: OpenCatalog):
    await make(catalog)
    names = [f"f{number:02d}" for number in range(40)]

    answers = await asyncio.gather(*(append(catalog, name) for name in names))

    assert await planned(catalog) == names
    metadata = decoded(await load_table(catalog, ROOT, T))
    snapshots = metadata["snapshots"]
    assert len(snapshots) < 10
    assert {each.snapshot_id for each in answers} == {each["snapshot-id"] for each in snapshots}
    assert sum(each.added_files for each in answers) == 40
    assert snapshots[-1]["summary"]["total-data-files"] == "40"
    folder = Path(metadata["location"].removeprefix("file://")) / "metadata"
    lists = {each["manifest-list"].removeprefix("file://") for each in snapshots}
    await catalog.shared.background.close()
    assert {str(each) for each in folder.glob("snap-*")} == lists


async def test_one_bad_append_among_others_hurts_none_of_them(catalog: OpenCatalog):
    await make(catalog)
    location = await where(catalog)
    await append(catalog, "old")
    good = [append(catalog, f"f{number}") for number in range(6)]
    bad = [
        append_files(catalog, ROOT, T, Addition(data_files=[file(location, "old")])),
        append_files(catalog, ROOT, T, Addition(data_files=[file("file:///elsewhere", "x")])),
        append_files(catalog, ROOT, T, Addition(data_files=[file(location, "p", **{"spec-id": 9})])),
    ]

    outcomes = await asyncio.gather(*good[:2], *bad, *good[2:], return_exceptions=True)

    refusals = [each for each in outcomes if isinstance(each, BadInput)]
    assert [each.details["field"] for each in refusals] == [
        "data-files[0].file-path",
        "data-files[0].file-path",
        "data-files[0].spec-id",
    ]
    assert await planned(catalog) == [*(f"f{number}" for number in range(6)), "old"]


async def test_manifests_are_merged_as_the_table_says(catalog: OpenCatalog):
    await make(catalog)
    await change(catalog, properties(**{"commit.manifest.min-count-to-merge": "3"}))
    for number in range(7):
        await append(catalog, f"f{number}")

    answer = await load_table(catalog, ROOT, T)
    table = StaticTable.from_metadata(str(answer.metadata_location))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) < 4
    assert await planned(catalog) == [f"f{number}" for number in range(7)]
    entries = [one for each in snapshot.manifests(table.io) for one in each.fetch_manifest_entry(table.io)]
    numbers = sorted(each.sequence_number or 0 for each in entries)
    assert numbers == [1, 2, 3, 4, 5, 6, 7]
