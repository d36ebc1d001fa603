from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.tables import change, decoded, make, properties, snapshot

pytestmark = pytest.mark.anyio

SETTINGS = {"history.expire.max-snapshot-age-ms": "1000", "history.expire.min-snapshots-to-keep": "2"}
ASKED = {"cynosure.retention.enabled": "true"}


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[OpenCatalog]:
    # Half a minute after the snapshots that `tests.catalog.tables` makes.
    clock = ManualClock(now_us=1_900_000_030_000_000)
    async with open_directory_in(tmp_path, clock=clock) as directory:
        opened = await make_catalog(directory, tmp_path)
        await create_namespace(opened, ROOT, ("ns",), {})
        yield opened


async def make_history(catalog: OpenCatalog, wanted: dict[str, str]) -> dict:
    made = await make(catalog, properties=wanted)
    for number in range(1, 6):
        metadata = decoded(await change(catalog, *snapshot(number, at=made, parent=number - 1 or None)))
    return metadata


def ids(metadata: dict) -> list[int]:
    return [each["snapshot-id"] for each in metadata["snapshots"]]


async def test_a_table_that_does_not_ask_keeps_all_snapshots(catalog: OpenCatalog):
    assert ids(await make_history(catalog, SETTINGS)) == [1, 2, 3, 4, 5]


async def test_a_table_that_asks_keeps_what_its_settings_say(catalog: OpenCatalog):
    metadata = await make_history(catalog, {**SETTINGS, **ASKED})
    assert ids(metadata) == [4, 5]
    assert metadata["current-snapshot-id"] == 5


async def test_what_was_let_go_is_told_in_the_change_feed(catalog: OpenCatalog):
    await make_history(catalog, {**SETTINGS, **ASKED})
    page = await read_changes(catalog, ROOT, start="oldest")
    assert [each.expired_snapshots for each in page.changes if each.expired_snapshots] == [
        ("1",),
        ("2",),
        ("3",),
    ]


async def test_branches_and_tags_keep_their_snapshots_and_young_ones_stay(catalog: OpenCatalog):
    made = await make(catalog, properties={**SETTINGS, **ASKED})
    await change(catalog, *snapshot(1, at=made))
    tag = {"action": "set-snapshot-ref", "ref-name": "v1", "type": "tag", "snapshot-id": 1}
    await change(catalog, tag)
    for number in range(2, 6):
        metadata = decoded(await change(catalog, *snapshot(number, at=made, parent=number - 1)))
    assert ids(metadata) == [1, 4, 5]


async def test_a_commit_that_adds_no_snapshot_lets_none_go(catalog: OpenCatalog):
    made = await make_history(catalog, SETTINGS)
    assert ids(decoded(await change(catalog, properties(**ASKED)))) == [1, 2, 3, 4, 5]
    added = snapshot(6, at=made["location"], parent=5)
    assert ids(decoded(await change(catalog, *added))) == [5, 6]
