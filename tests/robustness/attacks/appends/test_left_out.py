"""Who cannot come along with others: each hears why, and nobody else suffers for it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.appending.addition import MOST_MANIFESTS, Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import BadInput
from cynosure.testing.small_access import P, on_table
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_keys import with_key
from tests.catalog.appending.test_append_files import file, planned, where
from tests.catalog.tables import T, change, decoded
from tests.catalog.world import Lake

pytestmark = pytest.mark.anyio


async def append(lake: Lake, who: Caller, names: Sequence[str], path: str | None = None) -> Appended:
    location = path or await where(lake.catalog)
    return await append_files(
        lake.catalog, who, T, Addition(data_files=[file(location, name) for name in names])
    )


async def test_when_nobody_of_a_group_may_all_are_told_that(lake: Lake):
    bob = await lake.people.add("bob", lake.catalog, *on_table(T, P.TABLE_ADD_SNAPSHOT))

    outcomes = await asyncio.gather(
        *(append(lake, bob, [f"f{at}"], str(lake.folder)) for at in range(6)), return_exceptions=True
    )

    assert [type(each) for each in outcomes] == [AccessDenied] * 6
    assert await planned(lake.catalog) == []


async def test_bad_requests_in_front_do_not_keep_the_others(lake: Lake):
    location = await where(lake.catalog)
    bad = [append(lake, ROOT, [f"b{at}"], "file:///elsewhere") for at in range(20)]
    good = [append(lake, with_key(ROOT, f"k{at}"), [f"g{at}"], location) for at in range(5)]

    outcomes = await asyncio.gather(*bad, *good, return_exceptions=True)

    assert [type(each) for each in outcomes] == [BadInput] * 20 + [Appended] * 5
    assert await planned(lake.catalog) == [f"g{at}" for at in range(5)]
    metadata = decoded(await load_table(lake.catalog, ROOT, T))
    await lake.directory.shared.background.close()
    folder = Path(metadata["location"].removeprefix("file://")) / "metadata"
    stored = {each.name for each in folder.glob("snap-*.avro")}
    named = {each["manifest-list"].rpartition("/")[2] for each in metadata["snapshots"]}
    assert stored == named


async def test_the_same_file_in_requests_at_once_is_added_by_one(lake: Lake):
    outcomes = await asyncio.gather(*(append(lake, ROOT, ["same"]) for _ in range(8)), return_exceptions=True)

    assert sorted(type(each).__name__ for each in outcomes) == ["Appended"] + ["BadInput"] * 7
    assert await planned(lake.catalog) == ["same"]


@pytest.mark.parametrize("begin", ["", "file:", "file://localhost", "FILE://"])
async def test_a_file_has_one_name_only(lake: Lake, begin: str):
    location = await where(lake.catalog)
    await append(lake, ROOT, ["same"])

    with pytest.raises(BadInput, match=r"data-files\[0\].file-path"):
        await append(lake, ROOT, ["same"], begin + location.removeprefix("file://"))
    same = file(location, "x", **{"file-path": f"{location}/data/same.parquet/"})
    with pytest.raises(BadInput, match=r"data-files\[0\].file-path"):
        await append_files(lake.catalog, ROOT, T, Addition(data_files=[same]))

    assert await planned(lake.catalog) == ["same"]


async def test_manifests_without_end_are_refused_before_one_is_read(lake: Lake):
    location = await where(lake.catalog)
    with pytest.raises(BadInput, match="manifests"):
        Addition(manifests=[f"{location}/metadata/{at}.avro" for at in range(MOST_MANIFESTS + 1)])


async def test_the_key_of_one_who_was_left_out_is_not_used_up(lake: Lake):
    location = await where(lake.catalog)
    first = await append(lake, ROOT, ["first"])

    async def to_branch(at: int) -> Appended:
        addition = Addition(data_files=[file(location, f"dev{at}")], branch="dev")
        return await append_files(lake.catalog, with_key(ROOT, f"dev{at}"), T, addition)

    outcomes = await asyncio.gather(
        *(append(lake, with_key(ROOT, f"k{at}"), [f"f{at}"], location) for at in range(3)),
        *(to_branch(at) for at in range(3)),
        *(append(lake, with_key(ROOT, f"l{at}"), [f"g{at}"], location) for at in range(3)),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes] == [Appended] * 3 + [BadInput] * 3 + [Appended] * 3
    branch = {"action": "set-snapshot-ref", "ref-name": "dev", "type": "branch"}
    await change(lake.catalog, {**branch, "snapshot-id": first.snapshot_id})

    again = await asyncio.gather(*(to_branch(at) for at in range(3)))

    assert [each.added_files for each in again] == [1, 1, 1]
    refs = decoded(await load_table(lake.catalog, ROOT, T))["refs"]
    assert refs["dev"]["snapshot-id"] == max(again, key=lambda each: each.sequence_number).snapshot_id
    assert not any(name.startswith("dev") for name in await planned(lake.catalog))


async def test_a_summary_does_not_grow_the_metadata_of_all(lake: Lake):
    with pytest.raises(BadInput, match="summary"):
        Addition(data_files=[{}], summary={f"key {at}": "x" * 100 for at in range(1_000)})


async def test_a_table_changed_while_they_wait(lake: Lake):
    location = await where(lake.catalog)
    column = {"id": 3, "name": "more", "type": "int", "required": False}
    fields = decoded(await load_table(lake.catalog, ROOT, T))["schemas"][0]["fields"]
    schema = {"type": "struct", "schema-id": 1, "fields": [*fields, column]}
    evolve = change(
        lake.catalog,
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "upgrade-format-version", "format-version": 3},
    )
    names = [f"f{at:02d}" for at in range(30)]

    await asyncio.gather(
        *(append(lake, ROOT, [name], location) for name in names[:15]),
        evolve,
        *(append(lake, ROOT, [name], location) for name in names[15:]),
    )

    assert await planned(lake.catalog) == names
    snapshots = decoded(await load_table(lake.catalog, ROOT, T))["snapshots"]
    numbers = [each["sequence-number"] for each in snapshots]
    assert numbers == sorted(set(numbers))


async def test_who_goes_away_takes_nobody_along(lake: Lake):
    location = await where(lake.catalog)
    tasks = [asyncio.create_task(append(lake, ROOT, [f"f{at:02d}"], location)) for at in range(40)]
    for at, task in enumerate(tasks):
        if at % 2:
            await asyncio.sleep(0)
            task.cancel()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    stayed = [f"f{at:02d}" for at in range(0, 40, 2)]
    assert all(isinstance(each, Appended) for each in outcomes[::2])
    found = await planned(lake.catalog)
    assert set(stayed) <= set(found)
    assert len(found) == len(set(found))
    # And the next one is not kept waiting for a turn.
    await asyncio.wait_for(append(lake, ROOT, ["last"], location), 60)
