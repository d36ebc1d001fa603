from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.anyio

ErrorOf = Callable[[httpx.Response], tuple[int, str]]
REPORTS = "http://test/api/catalog/cynosure/v1/lake/namespaces/a/tables/t/metrics"
SCAN = {
    "report-type": "scan-report",
    "table-name": "a.t",
    "snapshot-id": 2**62,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 2}},
}


@pytest.fixture
async def table(client: httpx.AsyncClient, schema: dict[str, Any]) -> httpx.AsyncClient:
    await client.post("namespaces", json={"namespace": ["a"]})
    await client.post("namespaces/a/tables", json={"name": "t", "schema": schema})
    return client


async def test_reports_are_kept_as_they_came(table: httpx.AsyncClient) -> None:
    unknown = {"report-type": "surprise", "snapshot-id": "none", "deep": {"er": [1, 2.5, None]}}

    for report in (SCAN, unknown):
        response = await table.post("namespaces/a/tables/t/metrics", json=report)
        assert (response.status_code, response.content) == (204, b"")

    first, second = (await table.get(REPORTS)).json()["reports"]
    assert (first["report"], second["report"]) == (SCAN, unknown)
    assert (first["report-type"], second["report-type"]) == ("scan-report", "surprise")
    assert (first["snapshot-id"], second["snapshot-id"]) == (2**62, None)
    assert first["principal"] == "operator"
    assert first["received-ms"] <= second["received-ms"]


async def test_reports_follow_a_renamed_table(table: httpx.AsyncClient, error_of: ErrorOf) -> None:
    await table.post("namespaces/a/tables/t/metrics", json=SCAN)
    await table.post(
        "tables/rename",
        json={"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}},
    )

    moved = await table.get(REPORTS.replace("/t/", "/u/"))
    gone = await table.get(REPORTS)

    assert [each["report"] for each in moved.json()["reports"]] == [SCAN]
    assert error_of(gone) == (404, "NoSuchTableException")


async def test_reports_are_paged(table: httpx.AsyncClient) -> None:
    for number in range(3):
        await table.post("namespaces/a/tables/t/metrics", json={"report-type": f"r{number}"})

    first = (await table.get(REPORTS, params={"pageSize": 2})).json()
    last = (await table.get(REPORTS, params={"pageSize": 2, "pageToken": first["next-page-token"]})).json()

    assert [each["report-type"] for each in first["reports"]] == ["r0", "r1"]
    assert [each["report-type"] for each in last["reports"]] == ["r2"]
    assert "next-page-token" not in last


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "report-type"),
        (b'{"report-type":5}', "report-type"),
        (b"[]", "body"),
        (b'{"report-type":"x","y":"\xff"}', "body"),
        (b'{"report-type":"x","y":' + b"[" * 5_000, "body"),
        (b'{"report-type":"x","y":"' + b"y" * 2**20 + b'"}', "body"),
    ],
)
async def test_what_is_no_report_is_refused(
    table: httpx.AsyncClient, error_of: ErrorOf, body: bytes, field: str
) -> None:
    response = await table.post(
        "namespaces/a/tables/t/metrics", content=body, headers={"content-type": "application/json"}
    )

    assert error_of(response) == (400, "BadRequestException")
    assert field in response.json()["error"]["message"]
    assert (await table.get(REPORTS)).json() == {"reports": []}
