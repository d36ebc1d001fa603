"""Migrations over HTTP: who may, what is refused, and what a client is told meanwhile."""

from typing import Any

import pytest

from tests.api.management.test_remotes import FAR, Far, far, load

__all__ = ["far"]
pytestmark = pytest.mark.anyio

STEPS = (
    {"step": "begin"},
    {"step": "take"},
    {"step": "take", "type": "table", "namespace": ["ns"]},
    {"step": "settle"},
    {"step": "release"},
    {"step": "finish"},
)


async def send(far: Far, step: dict[str, Any]) -> dict[str, Any]:
    answer = await far.root.post(f"{FAR}/migration", json=step)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_step_by_step_a_catalog_is_ours(far: Far) -> None:
    surveyed = await send(far, {"step": "survey", "type": "table", "namespace": ["ns"]})
    assert surveyed == {
        "phase": "none",
        "objects": [{"type": "table", "path": ["ns", "orders"], "outcome": "ready"}],
        "nextPageToken": None,
        "into": None,
        "room": None,
    }

    phases = [(await send(far, step))["phase"] for step in STEPS]

    assert phases == ["taking", "taking", "taking", "taking", "releasing", "done"]
    assert (await send(far, {"step": "status"}))["phase"] == "done"
    shown = (await far.root.get("/catalogs/far")).json()
    assert (shown["type"], shown.get("connectionConfigInfo")) == ("INTERNAL", None)
    assert (await load(far)).status_code == 200
    assert far.remote.tables == {}


async def test_changes_are_refused_meanwhile_and_reading_goes_on(far: Far) -> None:
    for step in STEPS[:3]:
        await send(far, step)

    answer = await far.root.delete("http://test/api/catalog/v1/far/namespaces/ns/tables/orders")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    assert "being moved" in answer.json()["error"]["message"]
    assert (await load(far)).status_code == 200
    compared = await far.root.post(f"{FAR}/reconcile")
    assert compared.status_code == 503


async def test_what_is_no_step_is_refused(far: Far) -> None:
    refused = [
        await far.root.post(f"{FAR}/migration", json=body)
        for body in (
            {},
            {"step": "jump"},
            {"step": "survey", "type": "table"},
            {"step": "survey", "pageToken": "x"},
            {"step": "begin", "namespaces": [[]]},
            {"step": "status", "surprise": 1},
        )
    ]
    elsewhere = await far.root.post("/cynosure/catalogs/lake/migration", json={"step": "status"})
    early = await far.root.post(f"{FAR}/migration", json={"step": "finish"})

    assert [each.status_code for each in refused] == [400] * 6
    assert elsewhere.status_code == 404
    assert early.status_code == 409
    assert far.remote.asked == []


async def test_where_tables_cannot_go_is_refused_with_what_to_do(far: Far) -> None:
    made = await far.root.post("/catalogs", json=far.world.catalog("ours"))
    assert made.status_code == 201, made.text
    bodies: tuple[tuple[dict[str, Any], int, str], ...] = (
        ({"into": "far"}, 400, "into"),
        ({"into": "nowhere"}, 404, "nowhere"),
        ({"into": "ours", "tables": [["ns", "odrers"]]}, 400, "ns.odrers"),
        ({"into": "ours", "tables": [["orders"]]}, 400, "tables"),
        ({"into": "ours", "tables": [["ns", f"t{number}"] for number in range(1_001)]}, 400, "1000"),
    )
    for body, status, named in bodies:
        answer = await far.root.post(f"{FAR}/migration", json={"step": "begin", **body})
        assert (answer.status_code, named in answer.text) == (status, True), answer.text

    told = await send(far, {"step": "survey", "type": "table", "namespace": ["ns"], "into": "ours"})
    assert (told["into"], told["room"]) == ("ours", 99)
    (line,) = told["objects"]
    # Its file was never written.
    assert (line["outcome"], "cannot read" in line["reason"]) == ("obstacle", True)
    assert (await send(far, {"step": "status"}))["phase"] == "none"
