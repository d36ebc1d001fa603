"""What is in a plan: the files of the state that was asked for, and how each has to be read."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.plan_scan import plan_scan
from cynosure.catalog.planning.opening import Asking
from cynosure.catalog.planning.request import ScanRequest
from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.content_file import Content
from cynosure.iceberg.manifests.content_file_json import BoundForm
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.planning.scans import (
    BY_DATA,
    Scanned,
    long_bound,
    make_scanned,
    names,
    plan,
    plan_names,
    read_all,
    read_tasks,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[OpenCatalog]:
    settings = CatalogSettings(planning=PlanningSettings(page_files=3))
    async with open_directory_in(tmp_path, catalog_settings=settings) as directory:
        opened = await make_catalog(directory, tmp_path)
        await create_namespace(opened, ROOT, ("ns",), {})
        yield opened


@pytest.fixture
async def scanned(catalog: OpenCatalog) -> Scanned:
    return await make_scanned(catalog)


@pytest.fixture
async def parted(catalog: OpenCatalog) -> Scanned:
    return await make_scanned(catalog, fields=BY_DATA)


def compare(op: str, column: str, value: Any) -> dict[str, Any]:
    return {"type": op, "term": column, "value": value}


async def test_a_table_without_a_snapshot_has_no_files(scanned: Scanned) -> None:
    planned = await plan(scanned)

    assert planned.tasks is not None
    assert (planned.tasks.files, planned.tasks.plan_tasks) == ([], [])


async def test_a_plan_is_of_the_current_snapshot_or_of_the_one_that_is_named(scanned: Scanned) -> None:
    first = await scanned.commit([scanned.file("a")])
    await scanned.commit([scanned.file("b")])

    assert await plan_names(scanned) == ["a", "b"]
    assert await plan_names(scanned, snapshot_id=first) == ["a"]


async def test_files_whose_bounds_cannot_match_are_left_out_in_both_forms_of_the_filter(
    scanned: Scanned,
) -> None:
    await scanned.commit([scanned.file("a", 0, 9), scanned.file("b", 10, 19)], [scanned.file("c", 20, 29)])
    current = {"type": "lt", "left": {"type": "reference", "name": "id"}, "right": 15}

    assert await plan_names(scanned, filter=compare("lt", "id", 15)) == ["a", "b"]
    assert await plan_names(scanned, filter=current) == ["a", "b"]
    assert await plan_names(scanned, filter=False) == []


async def test_what_nothing_was_taken_from_comes_back_as_it_was_sent(scanned: Scanned) -> None:
    await scanned.commit([scanned.file("a")])
    sent = {"type": "lt", "left": {"type": "reference", "name": "id"}, "right": 5}

    (task,) = await read_all(scanned, await plan(scanned, filter=sent))

    assert task["residual-filter"] == sent


async def test_a_residual_is_what_the_partition_leaves_and_nothing_when_it_answers_all(
    parted: Scanned,
) -> None:
    await parted.commit([parted.file("a", partition=("x",)), parted.file("b", partition=("y",))])
    half = {"type": "and", "left": compare("eq", "data", "x"), "right": compare("lt", "id", 5)}

    (task,) = await read_all(parted, await plan(parted, filter=half))
    (whole,) = await read_all(parted, await plan(parted, filter=compare("eq", "data", "x")))

    assert task["residual-filter"] == compare("lt", "id", 5)
    assert task["data-file"]["partition"] == ["x"]
    assert whole["residual-filter"] is True


async def test_two_columns_compared_stay_in_the_form_that_has_words_for_it(parted: Scanned) -> None:
    await parted.commit([parted.file("a", partition=("x",))])
    columns = {
        "type": "eq",
        "left": {"type": "reference", "name": "id"},
        "right": {"type": "reference", "name": "id"},
    }
    both = {"type": "and", "left": columns, "right": compare("eq", "data", "x")}

    (task,) = await read_all(parted, await plan(parted, filter=both))

    assert task["residual-filter"] == columns


async def test_each_file_names_the_delete_files_that_apply_to_it(parted: Scanned) -> None:
    x, y = {"partition": ("x",)}, {"partition": ("y",)}
    await parted.commit([parted.file("a", **x), parted.file("b", **y), parted.file("c", **x)])
    deletes = [
        parted.delete_file("x-pos", **x),
        parted.delete_file("b-pos", referenced_data_file=parted.path("b"), **y),
        parted.delete_file("y-eq", content=Content.EQUALITY_DELETES, equality_ids=(1,), **y),
    ]
    await parted.commit([parted.file("d", **y)], deletes=deletes, operation="overwrite")

    found = {
        name: sorted(one["file-path"].rpartition("/")[2] for one in task.get("deletes", ()))
        for task in await read_all(parted, await plan(parted))
        for name in names([task])
    }

    assert found == {"a": ["x-pos"], "b": ["b-pos", "y-eq"], "c": ["x-pos"], "d": []}


async def test_an_incremental_scan_has_what_appends_in_between_have_added(scanned: Scanned) -> None:
    first = await scanned.commit([scanned.file("a")])
    await scanned.commit([scanned.file("b")])
    await scanned.commit(operation="overwrite", deletes=[scanned.delete_file("d")])
    await scanned.commit([scanned.file("r")], operation="replace", is_replacing=True)
    last = await scanned.commit([scanned.file("c")])

    found = await read_all(scanned, await plan(scanned, start_snapshot_id=first, end_snapshot_id=last))

    assert names(found) == ["b", "c"]
    assert all("deletes" not in each for each in found)
    assert await plan_names(scanned, start_snapshot_id=last, end_snapshot_id=last) == []


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"snapshot_id": 77}, "snapshot-id"),
        ({"start_snapshot_id": 1}, "end-snapshot-id"),
        ({"end_snapshot_id": 1}, "start-snapshot-id"),
        ({"snapshot_id": 1, "start_snapshot_id": 1, "end_snapshot_id": 2}, "snapshot-id"),
        ({"start_snapshot_id": 2, "end_snapshot_id": 1}, "start-snapshot-id"),
        ({"start_snapshot_id": 1, "end_snapshot_id": 77}, "end-snapshot-id"),
        ({"select": ("id", "nope")}, "select[1]"),
        ({"select": ("ID",)}, "select[0]"),
        ({"stats_fields": ("nope",)}, "stats-fields[0]"),
        ({"min_rows_requested": -1}, "min-rows-requested"),
        ({"filter": compare("eq", "nope", 1)}, "filter"),
        ({"filter": compare("eq", "id", "text")}, "filter"),
        ({"filter": {"type": "nonsense"}}, "filter.type"),
        ({"filter": {"type": "in", "term": "data", "values": ["x" * 1_000] * 1_100}}, "filter"),
    ],
)
async def test_what_does_not_fit_is_refused_by_name(
    scanned: Scanned, request_: dict[str, Any], field: str
) -> None:
    await scanned.commit([scanned.file("a")])
    await scanned.commit([scanned.file("b")])

    with pytest.raises(BadInput) as caught:
        await plan(scanned, **request_)

    assert caught.value.field == field
    assert caught.value.fix


async def test_a_filter_that_is_too_deep_is_bad_input_and_not_too_large(scanned: Scanned) -> None:
    for depth in (500, 10_000):
        json = b'{"type":"not","child":' * depth + b"true" + b"}" * depth
        with pytest.raises(BadInput) as caught:
            await plan_scan(scanned.catalog, ROOT, scanned.table, ScanRequest(filter=msgspec.Raw(json)))
        assert type(caught.value) is BadInput
        assert caught.value.field.startswith("filter")


async def test_names_are_found_without_regard_to_case_where_that_is_asked_for(scanned: Scanned) -> None:
    await scanned.commit([scanned.file("a", 0, 9), scanned.file("b", 10, 19)])

    found = await plan_names(
        scanned, select=("ID", "_file"), filter=compare("gt", "Id", 12), case_sensitive=False
    )

    assert found == ["b"]


async def test_metrics_are_told_for_the_columns_that_were_named_in_the_form_of_the_client(
    scanned: Scanned,
) -> None:
    await scanned.commit([scanned.file("a", 3, 9)])

    (bare,) = await read_all(scanned, await plan(scanned))
    (typed,) = await read_all(scanned, await plan(scanned, stats_fields=("id",)))
    java = Asking(bound_form=BoundForm.BINARY)
    (binary,) = await read_all(scanned, await plan(scanned, ROOT, java, stats_fields=("id",)))

    assert "lower-bounds" not in bare["data-file"]
    assert typed["data-file"]["lower-bounds"] == {"keys": [1], "values": [3]}
    assert typed["data-file"]["value-counts"] == {"keys": [1], "values": [10]}
    assert binary["data-file"]["lower-bounds"]["values"] == [long_bound(3).hex().upper()]


async def test_the_first_files_come_before_the_manifests_of_others_are_read(scanned: Scanned) -> None:
    manifests = [[scanned.file(f"{at}-{each}") for each in range(2)] for at in range(6)]
    await scanned.commit(*manifests)
    for each in scanned.manifests[2:]:
        scanned.local(each.path).rename(f"{scanned.local(each.path)}.later")

    planned = await plan(scanned)

    assert planned.tasks is not None
    assert names(read_tasks(planned.tasks)) == ["0-0", "0-1", "1-0", "1-1"]
    assert len(planned.tasks.plan_tasks) == 2
    for each in scanned.manifests[2:]:
        Path(f"{scanned.local(each.path)}.later").rename(scanned.local(each.path))
    found = names(await read_all(scanned, planned))
    assert found == [f"{at}-{each}" for at in range(6) for each in range(2)]


async def test_a_large_manifest_is_cut_and_no_file_is_lost_or_told_twice(scanned: Scanned) -> None:
    await scanned.commit(
        [scanned.file("first")], [scanned.file(f"{at:04}", at, at) for at in range(700)], [scanned.file("z")]
    )

    planned = await plan(scanned)
    kept = compare("gt-eq", "id", 350)

    assert planned.tasks is not None
    assert len(planned.tasks.plan_tasks) == 100
    found = await read_all(scanned, planned)
    assert names(found) == ["first", *(f"{at:04}" for at in range(700)), "z"]
    assert await plan_names(scanned, filter=kept) == [f"{at:04}" for at in range(350, 700)]


async def test_a_plan_ends_when_enough_rows_are_certain(scanned: Scanned) -> None:
    await scanned.commit(*[[scanned.file(f"{at}-{each}") for each in range(3)] for at in range(4)])

    few = await plan(scanned, min_rows_requested=25)
    many = await plan_names(scanned, min_rows_requested=55)
    tested = await plan(scanned, min_rows_requested=25, filter=compare("lt", "id", 5))

    assert few.tasks is not None
    assert few.tasks.plan_tasks == []
    assert names(read_tasks(few.tasks)) == ["0-0", "0-1", "0-2"]
    assert len(many) >= 6
    # Of rows that a filter still has to choose from, nobody knows how many there are.
    assert tested.tasks is not None
    assert len(tested.tasks.plan_tasks) == 3


async def test_rows_that_are_deleted_do_not_count_as_enough(scanned: Scanned) -> None:
    await scanned.commit(*[[scanned.file(f"{at}-{each}") for each in range(3)] for at in range(2)])
    await scanned.commit(deletes=[scanned.delete_file("d")], operation="delete")

    planned = await plan(scanned, min_rows_requested=25)

    assert len(await read_all(scanned, planned)) == 6
