"""Who may not see all of a table learns nothing more of it from plans (I50, I51, I88)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchPlanTask, RestrictedByPolicy
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.planning.opening import Asking, Planned
from cynosure.catalog.policies.placing import AttachTo
from cynosure.testing.small_catalog import ROOT
from tests.catalog.planning.scans import (
    BY_DATA,
    BY_ID,
    Scanned,
    make_engine,
    make_scanned,
    names,
    plan,
    read_all,
)
from tests.catalog.restrictions.restricting import CATALOG, EVERYTHING, restrict
from tests.catalog.world import NS, Lake, open_lake

pytestmark = pytest.mark.anyio

S = Identifier(NS, "scanned")
ON_S = AttachTo("table-like", (*NS, "scanned"))
SECRET = 987_654_321
ASKING = Asking(delegation=ANY_WAY)
KEY = b"key of the file"


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened


async def make(lake: Lake, fields: Any = ()) -> tuple[Scanned, Caller, Caller]:
    """A table, somebody who may read it, and a trusted engine that acts for them."""
    scanned = await make_scanned(lake.catalog, S, fields)
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
    more: dict[str, Any] = {"key_metadata": KEY}
    if fields == BY_DATA:
        more["partition"] = ("zz-secret",)
    elif fields:
        more["partition"] = (SECRET // 100 * 100,)
    await scanned.commit(
        [
            scanned.file("a", SECRET, SECRET + 5, **more),
            scanned.file("b", 0, 43, **more),
            scanned.file("c", 0, 43, **more),
        ]
    )
    deletes = [scanned.delete_file("d", record_count=41, **more)]
    await scanned.commit(deletes=deletes, operation="delete")
    return scanned, ann, await make_engine(lake.people, ann)


def told(planned: Planned) -> bytes:
    assert planned.tasks is not None
    return b"\n".join([*planned.tasks.files, *planned.tasks.delete_files])


def compare(op: str, column: str, value: Any) -> dict[str, Any]:
    return {"type": op, "term": column, "value": value}


async def test_under_a_mask_no_metric_of_any_column_and_no_credentials_are_told(lake: Lake) -> None:
    scanned, ann, _ = await make(lake)
    await restrict(lake, "mask", ON_S, columns={"data": "show-last-4"})

    planned = await plan(scanned, ann, ASKING, stats_fields=("id", "data"))

    text = told(planned)
    for secret in (b"secret", b"bounds", b"counts", str(SECRET).encode(), KEY.hex().upper().encode()):
        assert secret not in text
    assert planned.access is None
    assert planned.tasks is not None
    assert planned.tasks.restrictions is not None
    assert b"show-last-4" in planned.tasks.restrictions


async def test_a_filter_on_a_masked_column_tells_nothing_about_it(lake: Lake) -> None:
    scanned, ann, engine = await make(lake)
    await restrict(lake, "mask", ON_S, columns={"id": "mask-to-fixed-value"})
    filters = [
        compare("eq", "id", SECRET),
        compare("eq", "id", 5),
        {"type": "and", "left": compare("eq", "id", -1), "right": compare("eq", "data", "none")},
        {"type": "eq", "term": {"type": "transform", "transform": "bucket[4]", "term": "id"}, "value": 1},
    ]

    for who in (ann, engine):
        for each in filters:
            found = await read_all(scanned, await plan(scanned, who, filter=each), who)
            assert names(found) == ["a", "b", "c"]
            assert all(task["residual-filter"] == each for task in found)
    # A column that they see still chooses.
    assert await read_all(scanned, await plan(scanned, ann, filter=compare("eq", "data", "A")), ann) == []


async def test_under_a_row_filter_no_number_of_rows_and_no_choice_of_files_is_told(lake: Lake) -> None:
    scanned, ann, _ = await make(lake)
    await restrict(lake, "few", ON_S, filter="data = current_user()")

    for each in (compare("eq", "id", SECRET), compare("lt", "id", -5), compare("eq", "data", "none")):
        planned = await plan(scanned, ann, ASKING, filter=each, stats_fields=("id",), min_rows_requested=1)
        found = await read_all(scanned, planned, ann)

        assert names(found) == ["a", "b", "c"]
        files = [task["data-file"] for task in found]
        for file in (*files, *(one for task in found for one in task["deletes"])):
            assert file["record-count"] == 1
            assert not {"first-row-id", "split-offsets", "key-metadata", "lower-bounds"} & file.keys()
        assert b"secret" not in told(planned)
        assert planned.access is None


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        (BY_DATA, {"columns": {"data": "show-last-4"}}),
        (BY_DATA, {"filter": "id > 5"}),
        (BY_ID, {"columns": {"id": "mask-to-fixed-value"}}),
    ],
)
async def test_there_is_no_plan_where_paths_tell_what_is_hidden(
    lake: Lake, fields: Any, content: dict[str, Any]
) -> None:
    scanned, ann, engine = await make(lake, fields)
    await restrict(lake, "policy", ON_S, **content)

    with pytest.raises(RestrictedByPolicy, match="through a trusted engine") as caught:
        await plan(scanned, ann)

    assert caught.value.policies == ("ns.policy",)
    assert len(await read_all(scanned, await plan(scanned, engine), engine)) == 3


async def test_a_partition_by_a_column_that_is_seen_is_told(lake: Lake) -> None:
    scanned, ann, _ = await make(lake, BY_ID)
    await restrict(lake, "mask", ON_S, columns={"data": "show-last-4"})

    found = await read_all(scanned, await plan(scanned, ann), ann)

    assert {task["data-file"]["partition"][0] for task in found} == {SECRET // 100 * 100}


async def test_a_trusted_engine_gets_files_metrics_and_what_it_has_to_apply(lake: Lake) -> None:
    scanned, _, engine = await make(lake)
    await restrict(lake, "few", ON_S, filter="data = current_user()")

    planned = await plan(
        scanned, engine, ASKING, filter=compare("lt", "id", 50), stats_fields=("id",), min_rows_requested=1
    )
    found = await read_all(scanned, planned, engine)

    assert names(found) == ["b", "c"]
    assert [task["data-file"]["record-count"] for task in found] == [44, 44]
    assert found[0]["data-file"]["upper-bounds"]["values"] == [43]
    assert found[0]["data-file"]["key-metadata"] == KEY.hex().upper()
    assert planned.access is not None
    assert planned.tasks is not None
    assert planned.tasks.restrictions is not None
    applied = msgspec.json.decode(planned.tasks.restrictions)
    assert applied["required-row-filter"]["right"]["value"] == "ann"


async def test_what_is_restricted_later_counts_for_plans_that_were_made_before(lake: Lake) -> None:
    scanned = await make_scanned(lake.catalog, S)
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
    engine = await make_engine(lake.people, ann)
    files = [scanned.file(f"{at:05}", at, at + 41) for at in range(4_100)]
    await scanned.commit(files)
    planned = await plan(scanned, ann, stats_fields=("id",))
    trusted = await plan(scanned, engine, stats_fields=("id",))
    assert planned.tasks is not None
    assert trusted.tasks is not None
    task = planned.tasks.plan_tasks[0]
    before = await fetch_scan_tasks(lake.catalog, ann, S, task)
    assert b"lower-bounds" in before.files[0]

    await restrict(lake, "few", CATALOG, filter="id > 5")
    after = await fetch_scan_tasks(lake.catalog, ann, S, task)

    assert len(after.files) == len(before.files)
    assert b"bounds" not in b"".join(after.files)
    assert b'"record-count":42' not in b"".join(after.files)
    assert after.restrictions is not None
    # What the engine was given does not work for whom it acts.
    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(lake.catalog, ann, S, trusted.tasks.plan_tasks[0])
    await detach_policy(lake.catalog, ROOT, Identifier(NS, "few"), CATALOG)
    assert (await fetch_scan_tasks(lake.catalog, ann, S, task)).files == before.files


async def test_a_policy_that_does_not_fit_hides_the_plan(lake: Lake) -> None:
    scanned, ann, engine = await make(lake)
    await restrict(lake, "odd", CATALOG, filter="no_such_column > 5")

    for who in (ann, engine):
        with pytest.raises(RestrictedByPolicy):
            await plan(scanned, who)
