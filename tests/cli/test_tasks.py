"""`cynosure tasks …` against a server that tells what a test has written."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from cynosure.common.delegated.record import TaskDetails
from tests.cli.running import Cynosure, Ended
from tests.cli.scripted_server import Script, refusal, serve

ID = "0e1f8a50-5a3e-5f0e-9c59-1b6d5d6c7a10"
AT = "2026-01-31T12:00:00Z"


def task(status: str, **more: Any) -> dict[str, Any]:
    return {
        "task_id": ID,
        "version": 3,
        "task_type": "TABLE_PURGE",
        "status": status,
        "task_payload": "{}",
        "received_timestamp": AT,
        "last_status_change_ts": AT,
        "created_ts": AT,
        "attempt_count": 1,
        "table": "lake.sales.orders",
        **more,
    }


RUNNING = task("RUNNING", progress={"phase": "deleting data", "done": 3, "total": 10})
FAILED = task("FAILURE", error_code="STORAGE_REFUSED", result_summary="no right to delete")
DONE = task("SUCCESS", execution_result={"files_deleted": 10, "bytes_deleted": 4096})


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def tasks(
    script: Script, cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ended]]:
    """`cynosure tasks …` of somebody who is let in."""
    monkeypatch.setenv("SECRET_OF_ANN", "not-a-real-secret")
    who = ("--client-id", "ann", "--client-secret-env", "SECRET_OF_ANN")
    with serve(script) as url:
        yield lambda *arguments: cynosure("tasks", *arguments, "--url", url, *who)


def test_a_list_is_filtered_by_the_server_and_comes_whole(
    tasks: Callable[..., Ended], script: Script
) -> None:
    script.answers = [
        (200, {"tasks": [RUNNING], "nextPageToken": "more"}),
        (200, {"tasks": [FAILED]}),
    ]

    ended = tasks("list", "--status", "FAILURE", "--type", "TABLE_PURGE", "--catalog", "lake", "--limit", "5")

    assert ended.code == 0, ended.err
    assert "no right to delete" in ended.out
    assert script.asked == [
        "GET /management/v1/tasks?status=FAILURE&type=TABLE_PURGE&catalog=lake&pageSize=5",
        "GET /management/v1/tasks?status=FAILURE&type=TABLE_PURGE&catalog=lake&pageSize=4&pageToken=more",
    ]


def test_a_task_is_shown_for_people_and_for_programs(tasks: Callable[..., Ended], script: Script) -> None:
    script.answers = [(200, DONE)]

    shown, as_json = tasks("show", ID), tasks("show", ID, "--json")

    assert "4.0 KiB" in shown.out
    assert "lake.sales.orders" in shown.out
    assert msgspec.json.decode(as_json.out, type=TaskDetails).execution_result.files_deleted == 10


def test_a_history_has_every_version(tasks: Callable[..., Ended], script: Script) -> None:
    script.answers = [(200, {"versions": [task("SUBMITTED"), RUNNING, DONE]})]

    ended = tasks("show", ID, "--history")

    assert [line.split()[1] for line in ended.out.splitlines()] == [
        "STATE",
        "SUBMITTED",
        "RUNNING",
        "SUCCESS",
    ]
    assert script.asked == [f"GET /management/v1/tasks/{ID}/history"]


def test_watching_ends_with_the_task_and_tells_each_step_once(
    tasks: Callable[..., Ended], script: Script
) -> None:
    script.answers = [
        (200, task("SUBMITTED")),
        (200, RUNNING),
        (200, RUNNING),
        (200, task("RUNNING", attempt_count=2, progress={"phase": "deleting data", "done": 7, "total": 10})),
        (200, DONE),
    ]

    ended = tasks("watch", ID, "--interval", "0.05")

    assert ended.code == 0
    assert ended.out == "SUCCESS, 10 files, 4.0 KiB\n"
    assert ended.err.splitlines() == [
        "SUBMITTED",
        "RUNNING, deleting data 3/10",
        "RUNNING, deleting data, attempt 2 7/10",
        "SUCCESS, 4.0 KiB",
    ]


@pytest.mark.parametrize(("end", "code"), [(DONE, 0), (FAILED, 1)])
def test_watching_says_by_its_exit_code_how_the_task_ended(
    tasks: Callable[..., Ended], script: Script, end: dict[str, Any], code: int
) -> None:
    script.answers = [(200, end)]

    ended = tasks("watch", ID, "--json")

    assert ended.code == code
    assert json.loads(ended.out)["status"] == end["status"]


def test_what_cannot_be_found_is_not_watched(tasks: Callable[..., Ended], script: Script) -> None:
    script.answers = [refusal(404, "Task does not exist")]

    ended = tasks("watch", ID)

    assert (ended.code, "does not exist" in ended.err) == (1, True)


def test_a_task_is_tried_again_and_given_up(tasks: Callable[..., Ended], script: Script) -> None:
    script.answers = [(200, task("RETRY_SCHEDULED")), (200, FAILED), refusal(409, "The task has ended")]

    retried = tasks("retry", ID)
    asked = tasks("cancel", ID)
    cancelled = tasks("cancel", ID, "--yes")
    again = tasks("cancel", ID, "--yes")

    assert (retried.code, asked.code, cancelled.code, again.code) == (0, 1, 0, 1)
    assert "RETRY_SCHEDULED" in retried.out
    assert "--yes" in asked.err
    assert script.asked == [
        f"POST /management/v1/tasks/{ID}/retry",
        f"POST /management/v1/tasks/{ID}/cancel",
        f"POST /management/v1/tasks/{ID}/cancel",
    ]
