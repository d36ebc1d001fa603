"""Maintenance over HTTP: the plan, what was run, and a task ordered by hand."""

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.errors import Unavailable
from tests.catalog.upkeep.made import COMPACTION, ON_NS, ORPHANS, Kept, append, open_kept, policy

pytestmark = pytest.mark.anyio

LAKE = "/api/catalog/cynosure/v1/lake"
ORDER = f"{LAKE}/namespaces/ns/tables/t/maintenance"


class Served(NamedTuple):
    kept: Kept
    http: httpx.AsyncClient

    async def get(self, what: str, **query: Any) -> Any:
        answer = await self.http.get(f"{LAKE}/maintenance/{what}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with open_kept(tmp_path) as kept:
        service = make_service(
            cynosure_routes(Catalogs(kept.directory)),
            title="t",
            version="1",
            clock=kept.clock,
            rng=random.Random(1),
            gate=OperatorGate(),
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield Served(kept, client)


async def test_the_plan_tells_what_would_run_and_why_not(served: Served) -> None:
    await append(served.kept.catalog, 6)
    await policy(served.kept.catalog, "p", COMPACTION, ON_NS, schedule="PT6H", window="00:00-12:00", other=1)

    table, deep = (await served.get("plan"))["plan"]

    assert (table["namespace"], table["table"], table["operation"]) == (["ns"], "t", "DATA_COMPACTION")
    assert table["policy"] == {
        "namespace": ["ns"],
        "name": "p",
        "type": COMPACTION,
        "attached-to": "namespace ns",
    }
    assert (table["decision"], table["due-at"]) == ("run", "2026-01-01T00:00:00Z")
    assert (table["schedule"], table["window"]) == ("PT6H", "00:00-12:00")
    assert table["numbers"]["small-files"] == 6
    assert table["instructions"] == {"min_input_files": "5", "delete_file_threshold": "1"}
    assert table["notes"] == ["config.other is not known here and is left to engines"]
    assert (deep["table"], deep["decision"], deep["why"]) == (
        "u",
        "below-thresholds",
        "the table has no snapshot",
    )


async def test_what_was_run_with_before_and_after(served: Served) -> None:
    kept = served.kept
    await policy(kept.catalog, "p", ORPHANS, ON_NS, schedule="PT6H")
    await kept.round()
    assert {run["outcome"] for each in (await served.get("runs"))["tables"] for run in each["runs"]} == {
        "RUNNING"
    }
    details = {"files_before": 9, "files_after": 2, "bytes_before": 900, "bytes_after": 200}
    await kept.end_all(execution_result=ExecutionResult(7, 700, details), result_summary="done")
    await kept.clock.advance(30)

    tables = (await served.get("runs", namespace="ns", table="t"))["tables"]

    (run,) = tables[0]["runs"]
    assert len(tables) == 1
    assert run == {
        "task-id": run["task-id"],
        "ordered-at": "2026-01-01T00:00:00Z",
        "due-at": "2026-01-01T00:00:00Z",
        "ended-at": "2026-01-01T00:00:30Z",
        "outcome": "SUCCESS",
        "files-before": 9,
        "files-after": 2,
        "bytes-before": 900,
        "bytes-after": 200,
        "files-deleted": 7,
        "bytes-deleted": 700,
        "summary": "done",
    }
    plan = (await served.get("plan", namespace="ns", table="t"))["plan"]
    assert plan[0]["last-run"] == run
    assert plan[0]["next-at"] == "2026-01-01T06:00:00Z"


async def test_lists_come_in_pages(served: Served) -> None:
    await policy(served.kept.catalog, "p", ORPHANS, ON_NS)
    first = await served.get("plan", pageSize=1)
    second = await served.get("plan", pageSize=1, pageToken=first["next-page-token"])

    assert [each["table"] for page in (first, second) for each in page["plan"]] == ["t", "u"]
    assert first["is-complete"]
    assert "next-page-token" not in second


async def test_a_task_is_ordered(served: Served) -> None:
    body = {"operation": "expire_snapshots", "properties": {"min_snapshot_to_keep": "2"}}
    answer = await served.http.post(ORDER, json=body)

    assert answer.status_code == 202
    (order,) = served.kept.executor.orders
    assert answer.json()["task_id"] == order.task_id
    assert answer.json()["status"] == "SUBMITTED"
    assert order.properties == {"min_snapshot_to_keep": "2"}
    again = await served.http.post(ORDER, json=body)
    assert again.status_code == 409
    assert order.task_id in again.text


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        (ORDER, {"operation": "VACUUM"}, 400, "operation"),
        (ORDER, {"operation": "TABLE_PURGE"}, 400, "purgeRequested"),
        (ORDER, {"operation": "TABLE_PURGE", "properties": {"dryRun": "x"}}, 400, "dryRun"),
        (ORDER, {}, 400, "operation"),
        (ORDER, {"operation": "COMPACTION", "properties": {"a": 1}}, 400, "properties"),
        (ORDER, {"operation": "COMPACTION", "more": 1}, 400, "more"),
        (ORDER.replace("/t/", "/missing/"), {"operation": "COMPACTION"}, 404, "missing"),
    ],
)
async def test_wrong_orders(served: Served, path: str, body: Any, status: int, named: str) -> None:
    answer = await served.http.post(path, json=body)

    assert answer.status_code == status, answer.text
    assert named in answer.text
    assert served.kept.executor.orders == []


async def test_a_service_that_is_away_is_503(served: Served) -> None:
    served.kept.executor.refusal = Unavailable("The delegation service is away")

    assert (await served.http.post(ORDER, json={"operation": "COMPACTION"})).status_code == 503


@pytest.mark.parametrize("what", ["plan", "runs"])
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"table": "t"}, "namespace"),
        ({"pageSize": "0"}, "pageSize"),
        ({"pageToken": "forged"}, "token"),
        ({"namespace": "a\x1f"}, "namespace"),
    ],
)
async def test_wrong_questions(served: Served, what: str, query: dict[str, str], named: str) -> None:
    answer = await served.http.get(f"{LAKE}/maintenance/{what}", params=query)

    assert answer.status_code == 400, answer.text
    assert named in answer.text
