"""The judge of a table's history says what is wrong with it."""

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.load_table import load_table
from cynosure.testing.appended import judge_history
from cynosure.testing.small_catalog import ROOT
from tests.catalog.appending.test_append_files import file, where
from tests.catalog.tables import T, decoded
from tests.catalog.world import open_lake

pytestmark = pytest.mark.anyio

History = tuple[dict[str, Any], dict[str, int]]


@pytest.fixture
async def history(tmp_path: Path) -> AsyncIterator[History]:
    """A table's metadata, and what its writers were told."""
    async with open_lake(tmp_path) as lake:
        location = await where(lake.catalog)
        names = ["a", "b", "c", "d"]
        answers = await asyncio.gather(
            *(
                append_files(lake.catalog, ROOT, T, Addition(data_files=[file(location, name)]))
                for name in names
            )
        )
        told = {name: answer.snapshot_id for name, answer in zip(names, answers, strict=True)}
        yield decoded(await load_table(lake.catalog, ROOT, T)), told


async def test_a_whole_history_has_no_problems(history: History) -> None:
    metadata, told = history

    assert len(metadata["snapshots"]) == 2
    assert judge_history(metadata, told) == []


async def test_files_that_were_not_told_or_are_not_there_are_named(history: History) -> None:
    metadata, told = history
    first, last = (each["snapshot-id"] for each in metadata["snapshots"])
    wrong = {"a": last, **{name: told[name] for name in ("b", "c")}, "e": last}

    assert judge_history(metadata, wrong) == [
        "e is missing",
        "nobody appended d",
        f"a was added by {first}, not by {last} as was told",
    ]


async def test_a_history_that_is_not_one_line_is_noticed(history: History) -> None:
    metadata, told = history
    bent = deepcopy(metadata)
    first, last = bent["snapshots"]
    last["parent-snapshot-id"] = 7
    bent["current-snapshot-id"] = first["snapshot-id"]
    first["sequence-number"] = last["sequence-number"]

    assert judge_history(bent, told) == [
        f"snapshot {last['snapshot-id']} does not follow {first['snapshot-id']}",
        f"snapshot {last['snapshot-id']} has the number {last['sequence-number']}",
        "the newest snapshot is not the current one",
    ]


async def test_files_that_are_twice_or_no_longer_there_are_noticed(history: History) -> None:
    metadata, told = history
    first, last = metadata["snapshots"]
    bent = deepcopy(metadata)
    # As if the second snapshot had been committed twice, with the first one's files forgotten in between.
    bent["snapshots"] = [
        {**last, "parent-snapshot-id": None, "sequence-number": 1},
        {**first, "parent-snapshot-id": last["snapshot-id"], "sequence-number": 2},
    ]
    bent["current-snapshot-id"] = first["snapshot-id"]

    assert judge_history(bent, told) == [
        f"{name} is not in {first['snapshot-id']} any more" for name in ("b", "c", "d")
    ]


async def test_a_manifest_that_is_gone_is_noticed(history: History) -> None:
    metadata, told = history
    for path in Path(metadata["location"].removeprefix("file://")).rglob("*-m*.avro"):
        path.unlink()

    problems = judge_history(metadata, told)

    assert ["cannot be read" in each for each in problems[:2]] == [True, True]
    assert problems[2:] == [f"{name} is missing" for name in told]
