"""A long filter is repeated in every task and tested on every file: neither memory nor others pay for it."""

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cynosure.catalog.names import Identifier
from cynosure.catalog.planning import planner
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.pruning.pruner import Pruner
from tests.catalog.planning.scans import Scanned, make_scanned, names, plan, read_all
from tests.catalog.world import NS, Lake, open_lake

pytestmark = pytest.mark.anyio
FILES = 40


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened


@pytest.fixture
async def scanned(lake: Lake) -> Scanned:
    made = await make_scanned(lake.catalog, Identifier(NS, "scanned"))
    await made.commit([made.file(f"f{number:02d}") for number in range(FILES)])
    return made


def one_of(count: int) -> dict[str, Any]:
    """A filter that every file may match."""
    return {"type": "in", "term": "data", "values": [f"value {number:06d}" for number in range(count)]}


async def test_answers_stay_small_and_together_have_every_file_once(
    scanned: Scanned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "_PAGE_BYTES", 1_000_000)
    monkeypatch.setattr(planner, "_SLICE_BYTES", 200_000)
    wanted = {**one_of(4_000), "values": ["b", *one_of(4_000)["values"]]}

    planned = await plan(scanned, filter=wanted)

    assert planned.tasks is not None
    assert 0 < sum(map(len, planned.tasks.files)) < 1_300_000
    assert planned.tasks.plan_tasks
    found = await read_all(scanned, planned)
    assert sorted(names(found)) == [f"f{number:02d}" for number in range(FILES)]
    assert all(task["residual-filter"] == wanted for task in found)


async def test_others_go_on_while_it_is_tested(scanned: Scanned, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    rows = Pruner.rows

    def noted(self: Pruner, manifest: Manifest) -> Any:
        used.append(threading.current_thread().name)
        return rows(self, manifest)

    monkeypatch.setattr(Pruner, "rows", noted)
    monkeypatch.setattr(planner, "_MANY_TESTS", 10_000)

    await plan(scanned, filter=one_of(1))
    await plan(scanned, filter=one_of(2_000))

    assert used[0] == threading.current_thread().name
    assert used[1].startswith("plans")
