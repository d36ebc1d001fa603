"""Tasks of long work through the management API: who sees which, and what may be done to them."""

from typing import Any

import httpx
import pytest

from cynosure.common.delegated.payload import TableIdentity, TaskOrder
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import Unavailable
from cynosure.testing.admin import Grant
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.scripted_executor import ScriptedExecutor
from tests.api.management.conftest import ErrorOf
from tests.api.world import World

pytestmark = pytest.mark.anyio


@pytest.fixture
async def executor(world: World, lake: str) -> ScriptedExecutor:
    """With one task of `lake` and one of another catalog."""
    executor = ScriptedExecutor(ManualClock())
    world.directory.shared.use_executor(executor)
    await executor.purge_table(order("lake", "t"))
    await executor.compact_data(order("other", "u", TaskType.DATA_COMPACTION))
    return executor


def order(catalog: str, table: str, kind: TaskType = TaskType.TABLE_PURGE) -> TaskOrder:
    return TaskOrder(kind, "default", f"{catalog}-{table}", TableIdentity("7", catalog, ("ns",), table))


async def list_tables(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get("/tasks", params=query)
    assert answer.status_code == 200, answer.text
    return [each["table"] for each in answer.json()["tasks"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["other.ns.u", "lake.ns.t"]),
        ({"catalog": "lake"}, ["lake.ns.t"]),
        ({"type": "TABLE_COMPACTION"}, ["other.ns.u"]),
        ({"status": "QUEUED", "type": "PURGE_TABLE"}, ["lake.ns.t"]),
        ({"status": "FAILURE"}, []),
    ],
)
async def test_the_root_lists_all_tasks_the_newest_first_and_filters_them(
    root: httpx.AsyncClient, executor: ScriptedExecutor, query: dict[str, str], found: list[str]
) -> None:
    assert await list_tables(root, **query) == found


async def test_a_list_comes_in_pages(root: httpx.AsyncClient, executor: ScriptedExecutor) -> None:
    first = (await root.get("/tasks", params={"pageSize": 1})).json()
    second = (await root.get("/tasks", params={"pageSize": 1, "pageToken": first["nextPageToken"]})).json()

    assert [each["table"] for each in (*first["tasks"], *second["tasks"])] == ["other.ns.u", "lake.ns.t"]
    assert "nextPageToken" not in second


@pytest.mark.parametrize(
    ("query", "field"),
    [({"status": "DONE"}, "status"), ({"type": "LAUNDRY"}, "type"), ({"pageSize": "0"}, "pageSize")],
)
async def test_a_filter_that_means_nothing_is_named(
    root: httpx.AsyncClient, executor: ScriptedExecutor, query: dict[str, str], field: str
) -> None:
    answer = await root.get("/tasks", params=query)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["message"]


async def test_a_task_that_failed_is_tried_again_and_then_given_up(
    root: httpx.AsyncClient, executor: ScriptedExecutor, error_of: ErrorOf
) -> None:
    task_id = order("lake", "t").task_id
    await executor.end(task_id, TaskStatus.FAILURE, error_code="STORAGE", result_summary="no bucket")

    shown = await root.get(f"/tasks/{task_id}")
    retried = await root.post(f"/tasks/{task_id}/retry")
    cancelled = await root.post(f"/tasks/{task_id}/cancel")
    again = await root.post(f"/tasks/{task_id}/cancel")
    history = (await root.get(f"/tasks/{task_id}/history")).json()["versions"]

    assert (shown.json()["status"], shown.json()["result_summary"]) == ("FAILURE", "no bucket")
    assert (retried.status_code, retried.json()["status"]) == (200, "RETRY_SCHEDULED")
    assert (cancelled.status_code, cancelled.json()["error_code"]) == (200, "CANCELLED")
    assert error_of(again)[0] == 409
    assert [each["status"] for each in history] == ["SUBMITTED", "FAILURE", "RETRY_SCHEDULED", "FAILURE"]


@pytest.mark.parametrize("path", ["", "/history"])
async def test_a_task_that_nobody_knows_is_not_found(
    root: httpx.AsyncClient, executor: ScriptedExecutor, error_of: ErrorOf, path: str
) -> None:
    assert error_of(await root.get(f"/tasks/unknown{path}"))[0] == 404


async def test_who_manages_a_catalog_has_its_tasks_and_no_others(
    world: World, root: httpx.AsyncClient, executor: ScriptedExecutor
) -> None:
    who = await world.admin(root).create_user("ann", "lake", Grant("CATALOG_MANAGE_CONTENT"))
    mine, others = order("lake", "t").task_id, order("other", "u").task_id
    async with await world.login(who) as ann:
        assert await list_tables(ann, catalog="lake") == ["lake.ns.t"]
        answers = {
            "all": await ann.get("/tasks"),
            "of another": await ann.get("/tasks", params={"catalog": "other"}),
            "mine": await ann.get(f"/tasks/{mine}"),
            "cancel mine": await ann.post(f"/tasks/{mine}/cancel"),
            "others": await ann.get(f"/tasks/{others}"),
            "cancel others": await ann.post(f"/tasks/{others}/cancel"),
            "unknown": await ann.get("/tasks/unknown"),
        }

    assert {name: answer.status_code for name, answer in answers.items()} == {
        "all": 403,
        "of another": 403,
        "mine": 200,
        "cancel mine": 200,
        "others": 403,
        "cancel others": 403,
        "unknown": 403,
    }
    assert answers["others"].json() == answers["unknown"].json(), "whether it exists is not told"


async def test_a_refusal_is_an_event(
    root: httpx.AsyncClient, nobody: httpx.AsyncClient, executor: ScriptedExecutor
) -> None:
    task_id = order("lake", "t").task_id

    refused = await nobody.post(f"/tasks/{task_id}/retry")
    events = (await root.get("/cynosure/events", params={"operation": "manage-tasks"})).json()

    assert refused.status_code == 403
    assert [each["principal"] for each in events["events"]] == ["nobody"]


async def test_a_service_that_is_away_is_said_to_be(
    root: httpx.AsyncClient, executor: ScriptedExecutor, error_of: ErrorOf
) -> None:
    executor.refusal = Unavailable("The delegation service does not answer", fix="Start it.")

    answers = [await root.get("/tasks"), await root.post("/tasks/x/retry")]

    assert [error_of(each)[0] for each in answers] == [503, 503]
    assert "Start it" in answers[0].text
