"""Checks of storages over HTTP."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.world import World

pytestmark = pytest.mark.anyio


async def test_a_check_is_answered_step_by_step(world: World, root: httpx.AsyncClient, lake: str) -> None:
    answer = await root.post(f"/cynosure/catalogs/{lake}/check-storage")

    assert answer.status_code == 200
    found = answer.json()
    assert (found["catalog"], found["storageType"], found["ok"]) == ("lake", "FILE", True)
    first, last = found["steps"][0], found["steps"][-1]
    location = f"file://{world.folder / 'lake'}"
    assert {**first, "durationMs": 0} == {
        "name": "write",
        "location": location,
        "outcome": "ok",
        "durationMs": 0,
        "message": "",
        "fix": "",
        "details": {},
    }
    assert (last["name"], last["outcome"]) == ("bulk-deletes", "skipped")
    assert "neither credentials nor signatures" in last["message"]


async def test_a_storage_that_does_not_work_is_an_answer_too(
    world: World, root: httpx.AsyncClient, lake: str
) -> None:
    Path(world.folder / "lake").write_text("a file where the directory should be")

    answer = await root.post(f"/cynosure/catalogs/{lake}/check-storage")

    assert answer.status_code == 200
    assert answer.json()["ok"] is False
    assert answer.json()["steps"][0]["fix"]


async def test_who_may_not_change_a_catalog_may_not_check_it(refusing: Any, error_of: Any) -> None:
    denied = await refusing.nobody.post("/cynosure/catalogs/lake/check-storage")
    missing = await refusing.root.post("/cynosure/catalogs/none/check-storage")

    assert error_of(denied)[0] == 403
    assert "CATALOG_WRITE_PROPERTIES" in denied.text
    assert error_of(missing)[0] == 404
