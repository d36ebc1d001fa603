"""The routes, statuses and bodies that the proposal describes."""

import asyncio

import pytest

from cynosure.common.delegated.vocabulary import TYPE_ALIASES, TaskStatus, TaskType
from cynosure.delegation.jobs.port import JobFailed
from cynosure.testing.small_delegation import Gate, stumble, succeed
from tests.delegation.http.conftest import BASE, SYNC, World, payload

pytestmark = pytest.mark.anyio

KEY = "AKIA7QXWZ3PLM5NBV2CD"


async def test_a_task_that_is_waited_for_ends_with_what_it_did(world: World, http) -> None:
    world.small.job.script = [succeed(files=3, size=4096)]
    await world.work()

    answer = await http.post(SYNC, json=payload(operation_type="SYNCHRONOUS_TABLE_PURGE"))

    assert answer.status_code == 200
    said = answer.json()
    assert said["status"] == "COMPLETED_SUCCESS"
    assert said["execution_result"] == {"files_deleted": 3, "bytes_deleted": 4096}
    assert said["message"]
    task = await world.tasks.find(said["delegation_task_id"])
    assert task is not None
    assert task.status is TaskStatus.SUCCESS


@pytest.mark.parametrize(
    ("code", "status"),
    [("CREDENTIAL_VENDING_FAILED", 502), ("TABLE_MISMATCH", 409), ("CORRUPT_MANIFEST", 500)],
)
async def test_a_task_that_failed_says_why_with_the_status_of_its_failure(
    world: World, http, code: str, status: int
) -> None:
    world.small.job.script = [stumble(JobFailed("It went wrong", code=code, status=status, fix="Mend it."))]
    await world.work()

    answer = await http.post(SYNC, json=payload())

    assert answer.status_code == status
    said = answer.json()
    assert (said["status"], said["error_code"]) == ("FAILED_TERMINAL", code)
    assert "Mend it." in said["message"]
    assert await world.tasks.find(said["delegation_task_id"])


async def test_what_nobody_expected_is_500_without_a_traceback(world: World, http) -> None:
    world.small.job.script = [stumble(ValueError("insides"))]
    await world.work()

    answer = await http.post(SYNC, json=payload())

    assert answer.status_code == 500
    assert "insides" not in answer.text
    assert "Traceback" not in answer.text


async def test_who_has_waited_long_enough_is_told_that_it_goes_on(world: World) -> None:
    gate = Gate()
    world.small.job.script = [gate]
    await world.work()
    async with world.client(world.app(request_timeout_s=1.2)) as http:
        late = await http.post(SYNC, json=payload())

        assert late.status_code == 504
        assert late.json()["error_code"] == "TASK_STILL_RUNNING"
        task_id = late.json()["delegation_task_id"]
        await gate.entered.wait()
        assert (await http.get(f"{BASE}/tasks/{task_id}")).json()["status"] == "RUNNING"

    gate.opened.set()
    async with world.client() as http:
        again = await http.post(SYNC, json=payload())
        assert (again.status_code, again.json()["delegation_task_id"]) == (200, task_id)


async def test_a_task_that_is_not_waited_for_is_accepted_and_can_be_looked_at(world: World, http) -> None:
    accepted = await http.post(f"{BASE}/tasks", json=payload())

    task_id = accepted.json()["delegation_task_id"]
    assert accepted.status_code == 202
    assert accepted.json() == {
        "delegation_task_id": task_id,
        "status": "QUEUED",
        "status_query_url": f"/delegation-service/api/v1/tasks/{task_id}",
    }
    found = (await http.get(accepted.json()["status_query_url"])).json()
    assert (found["task_id"], found["version"], found["status"]) == (task_id, 1, "SUBMITTED")
    assert found["task_type"] == "TABLE_PURGE"
    assert {"task_payload", "received_timestamp", "last_status_change_ts", "created_ts"} <= found.keys()

    await world.work()
    ended = (await http.get(f"{BASE}/tasks/{task_id}", params={"wait": 20})).json()
    assert (ended["status"], ended["attempt_count"]) == ("SUCCESS", 1)
    history = (await http.get(f"{BASE}/tasks/{task_id}/history")).json()["versions"]
    assert [each["version"] for each in history] == list(range(1, len(history) + 1))
    assert [each["status"] for each in history][::3] == ["SUBMITTED", "SUCCESS"]


async def test_waiting_ends_with_the_task_or_with_the_time(world: World, http) -> None:
    gate = Gate()
    world.small.job.script = [gate]
    await world.work()
    task_id = (await http.post(f"{BASE}/tasks", json=payload())).json()["delegation_task_id"]
    await gate.entered.wait()

    early = await http.get(f"{BASE}/tasks/{task_id}", params={"wait": 0.05})
    assert early.json()["status"] == "RUNNING"
    waiting = asyncio.create_task(http.get(f"{BASE}/tasks/{task_id}", params={"wait": 25}))
    await asyncio.sleep(0.05)
    gate.opened.set()
    assert (await waiting).json()["status"] == "SUCCESS"


@pytest.mark.parametrize("path", ["", "/history", "?wait=1"])
async def test_a_task_that_nobody_knows_is_not_found(http, path: str) -> None:
    answer = await http.get(f"{BASE}/tasks/4b4ff3dc-0000-5000-8000-000000000000{path}")

    assert (answer.status_code, answer.json()["error_code"]) == (404, "TASK_NOT_FOUND")


async def test_the_same_correlation_id_is_the_same_task_and_never_another_one(world: World, http) -> None:
    first = await http.post(f"{BASE}/tasks", json=payload())
    again = await http.post(f"{BASE}/tasks", json=payload(request_timestamp_utc="2026-01-01T00:00:00Z"))
    other = payload()
    other["operation_parameters"]["table_identity"]["table_entity_id"] = "7002"

    refused = await http.post(f"{BASE}/tasks", json=other)

    assert again.json() == first.json()
    assert (refused.status_code, refused.json()["error_code"]) == (409, "CONFLICT")


@pytest.mark.parametrize(
    "spelling", [name for name, kind in TYPE_ALIASES.items() if kind is TaskType.TABLE_PURGE]
)
async def test_every_spelling_of_a_purge_is_one_kind(http, spelling: str) -> None:
    answer = await http.post(f"{BASE}/tasks", json=payload(operation_type=spelling))

    found = await http.get(answer.json()["status_query_url"])
    assert found.json()["task_type"] == "TABLE_PURGE"


def _without(path: str) -> dict:
    body = payload()
    *above, last = path.split(".")
    part = body
    for name in above:
        part = part[name]
    del part[last]
    return body


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (payload(operation_type="MAKE_COFFEE"), "operation_type"),
        (_without("common_payload"), "common_payload"),
        (_without("common_payload.operation_type"), "operation_type"),
        (_without("operation_parameters.table_identity"), "table_identity"),
        (_without("operation_parameters.table_identity.table_entity_id"), "table_entity_id"),
        (payload(""), "table_name"),
        (payload(polaris_correlation_id="x" * 256), "polaris_correlation_id"),
        ([], "body"),
    ],
)
async def test_an_order_that_cannot_be_carried_out_names_the_field(http, body, field: str) -> None:
    for path in (SYNC, f"{BASE}/tasks"):
        answer = await http.post(path, json=body)

        assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_REQUEST")
        assert field in answer.text


async def test_an_instruction_that_the_job_does_not_know_is_refused(http) -> None:
    body = payload()
    body["operation_parameters"]["properties"] = {"bad": "1"}

    answer = await http.post(f"{BASE}/tasks", json=body)

    assert answer.status_code == 400
    assert "properties.bad" in answer.json()["details"]


@pytest.mark.parametrize(
    ("content", "type_", "status"),
    [(b"{", "application/json", 400), (b"{}", "text/plain", 415), (b"\xff", "application/json", 400)],
)
async def test_what_is_no_order_at_all_is_refused(http, content: bytes, type_: str, status: int) -> None:
    answer = await http.post(f"{BASE}/tasks", content=content, headers={"Content-Type": type_})

    assert answer.status_code == status
    assert answer.json()["error_code"]


async def test_an_order_for_another_realm_is_refused(http) -> None:
    answer = await http.post(f"{BASE}/tasks", json=payload(realm_identifier="elsewhere"))

    assert (answer.status_code, answer.json()["error_code"]) == (403, "WRONG_REALM")


async def test_credentials_that_come_with_an_order_are_nowhere_afterwards(
    world: World, http, capsys: pytest.CaptureFixture[str]
) -> None:
    """I97."""
    body = payload()
    body["operation_parameters"] |= {
        "metadata_location": "s3://bucket/t/metadata/v3.json",
        "metadata": {"location": "s3://bucket/t", "table-uuid": "u", "format-version": 2, "x": KEY},
        "config": {"s3.secret-access-key": KEY},
    }
    await world.work()

    answers = [await http.post(SYNC, json=body)]
    task_id = answers[0].json()["delegation_task_id"]
    answers += [await http.get(f"{BASE}/tasks/{task_id}{path}") for path in ("", "/history")]
    answers += [await http.get(f"{BASE}/tasks"), await http.post(f"{BASE}/tasks", json=payload("config"))]

    assert [each.status_code for each in answers] == [200, 200, 200, 200, 202]
    assert not any(KEY in each.text for each in answers)
    rows = [repr(each) for each in await world.small.store.history(task_id)]
    assert "s3://bucket/t/metadata/v3.json" in rows[0]
    assert not any(KEY in row for row in rows)
    assert not any(KEY in str(attempt.order) for attempt in world.small.job.attempts)
    written = capsys.readouterr()
    assert KEY not in written.out + written.err


async def test_tasks_are_listed_newest_first_by_what_is_asked_for(http) -> None:
    for name in "abc":
        await http.post(f"{BASE}/tasks", json=payload(name))

    first = (await http.get(f"{BASE}/tasks", params={"pageSize": 2})).json()
    rest = (await http.get(f"{BASE}/tasks", params={"pageToken": first["next_page_token"]})).json()
    tables = [each["table"].rsplit(".", 1)[-1] for each in [*first["tasks"], *rest["tasks"]]]
    assert tables == ["c", "b", "a"]
    assert "next_page_token" not in rest
    for query, count in (
        ({"status": "QUEUED"}, 3),
        ({"status": "PROCESSING"}, 0),
        ({"type": "DATA_FILE_PURGE"}, 3),
        ({"type": "TABLE_COMPACTION"}, 0),
        ({"catalog": "lake"}, 3),
        ({"catalog": "sea"}, 0),
    ):
        assert len((await http.get(f"{BASE}/tasks", params=query)).json()["tasks"]) == count, query


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"status": "LOST"}, "status"),
        ({"type": "COFFEE"}, "type"),
        ({"pageSize": 0}, "pageSize"),
        ({"pageToken": "nonsense"}, "oken"),
    ],
)
async def test_a_question_that_cannot_be_answered_names_the_parameter(http, query, field: str) -> None:
    answer = await http.get(f"{BASE}/tasks", params=query)

    assert answer.status_code == 400
    assert field in answer.text


async def test_a_task_is_cancelled_and_tried_again(world: World, http) -> None:
    task_id = (await http.post(f"{BASE}/tasks", json=payload())).json()["delegation_task_id"]

    cancelled = await http.post(f"{BASE}/tasks/{task_id}/cancel")
    twice = await http.post(f"{BASE}/tasks/{task_id}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "FAILURE")
    assert (twice.status_code, twice.json()["error_code"]) == (409, "CONFLICT")

    retried = await http.post(f"{BASE}/tasks/{task_id}/retry")
    assert (retried.status_code, retried.json()["status"]) == (200, "SUBMITTED")
    await world.work()
    assert (await http.post(SYNC, json=payload())).status_code == 200
    late = await http.post(f"{BASE}/tasks/{task_id}/retry")
    assert late.status_code == 409
    for verb in ("cancel", "retry"):
        missing = await http.post(f"{BASE}/tasks/nobody/{verb}")
        assert (missing.status_code, missing.json()["error_code"]) == (404, "TASK_NOT_FOUND")


async def test_those_who_wait_are_let_go_when_the_service_stops(world: World, http) -> None:
    gate = Gate()
    world.small.job.script = [gate]
    await world.work()
    waiting = asyncio.create_task(http.post(SYNC, json=payload()))
    await gate.entered.wait()

    world.tasks.stop_waiting()

    assert (await waiting).status_code == 504
    gate.opened.set()
