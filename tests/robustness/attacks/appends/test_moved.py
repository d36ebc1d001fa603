"""Commits that would be moved, of clients that are wrong or lie: no file twice, and none lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import Conflict, CynosureError
from cynosure.iceberg.appending.writing import manifest_kind
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.manifests.content_file import Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import UNASSIGNED, write_manifest, write_manifest_list
from cynosure.testing.small_catalog import ROOT
from tests.catalog.appending.test_rebase import REBASE, Client, check_history, commit, read, see
from tests.catalog.tables import T, change, properties
from tests.catalog.world import Lake

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["2", "3"])
async def late(lake: Lake, request: pytest.FixtureRequest) -> Client:
    """A client that has seen the table before somebody else appended to it."""
    await change(
        lake.catalog,
        properties(**REBASE),
        {"action": "upgrade-format-version", "format-version": int(request.param)},
    )
    await commit(lake.catalog, (await see(lake.catalog)).append("first"))
    client = await see(lake.catalog)
    await commit(lake.catalog, (await see(lake.catalog)).append("second"))
    return client


def lines(body: dict[str, Any]) -> list[ManifestFile]:
    path = body["updates"][0]["snapshot"]["manifest-list"]
    return list(read_manifest_list(Path(path.removeprefix("file://")).read_bytes(), path=path).manifests)


def rewrite(client: Client, body: dict[str, Any], listed: list[ManifestFile]) -> None:
    """Write the list of a commit again, with other lines."""
    snapshot = body["updates"][0]["snapshot"]
    data, _, _ = write_manifest_list(
        listed,
        format_version=client.metadata.format_version,
        snapshot_id=snapshot["snapshot-id"],
        parent_snapshot_id=snapshot.get("parent-snapshot-id"),
        sequence_number=snapshot["sequence-number"],
        next_row_id=client.metadata.next_row_id,
    )
    Path(snapshot["manifest-list"].removeprefix("file://")).write_bytes(data)


def as_own(line: ManifestFile, body: dict[str, Any], **more: Any) -> ManifestFile:
    """A manifest as if the snapshot of this commit had added it."""
    return replace(
        line,
        added_snapshot_id=body["id"],
        sequence_number=UNASSIGNED,
        min_sequence_number=UNASSIGNED,
        first_row_id=None,
        **more,
    )


def open_manifest(client: Client, body: dict[str, Any]) -> ManifestFile:
    """The manifest of a commit, written anew so that it leaves to the list whose files these are."""
    own = lines(body)[0]
    file = Path(own.path.removeprefix("file://"))
    entries = [
        Entry(Status.ADDED, None, None, None, replace(each.file, first_row_id=None))
        for each in read_manifest(file.read_bytes(), own).entries()
    ]
    data, listed = write_manifest(
        manifest_kind(client.metadata, 0), entries, path=own.path, snapshot_id=body["id"]
    )
    file.write_bytes(data)
    return listed


def other_id(body: dict[str, Any], id_: int) -> dict[str, Any]:
    """The same commit under another snapshot id."""
    added, moved = body["updates"]
    snapshot = {**added["snapshot"], "snapshot-id": id_}
    return {
        "updates": ({**added, "snapshot": snapshot}, {**moved, "snapshot-id": id_}),
        "requires": body["requires"],
        "id": id_,
    }


async def test_a_manifest_that_is_tried_again_under_another_id_is_added_once(lake: Lake, late: Client):
    body = late.append("mine")
    again = other_id(late.append("other"), 77)
    kept = lines(body)[1:]
    own = open_manifest(late, body)
    rewrite(late, body, [own, *kept])
    rewrite(late, again, [as_own(own, again), *kept])

    outcomes = await asyncio.gather(
        commit(lake.catalog, body), commit(lake.catalog, again), return_exceptions=True
    )
    with pytest.raises(RequirementFailed):
        await commit(lake.catalog, again)

    assert sum(isinstance(each, Conflict) for each in outcomes) == 1
    files, metadata, _ = await read(lake.catalog)
    assert files == ["first", "mine", "second"]
    check_history(metadata)


async def test_a_manifest_named_twice_is_not_added_twice(lake: Lake, late: Client):
    body = late.append("mine")
    own, *kept = lines(body)
    rewrite(late, body, [as_own(own, body), as_own(own, body), *kept])

    with pytest.raises(RequirementFailed, match="not_moved"):
        await commit(lake.catalog, body)

    assert (await read(lake.catalog))[0] == ["first", "second"]


async def test_a_manifest_of_the_table_named_as_ones_own_is_not_added_again(lake: Lake):
    await change(lake.catalog, properties(**REBASE))
    client = await see(lake.catalog)
    body = client.append("first")
    rewrite(client, body, [open_manifest(client, body)])
    await commit(lake.catalog, body)
    late = await see(lake.catalog)
    await commit(lake.catalog, (await see(lake.catalog)).append("second"))
    body = late.append("mine")
    own, theirs = lines(body)
    rewrite(late, body, [as_own(own, body), as_own(theirs, body, existing_files=theirs.added_files)])

    with pytest.raises(RequirementFailed, match="not_moved"):
        await commit(lake.catalog, body)

    assert (await read(lake.catalog))[0] == ["first", "second"]


async def test_a_snapshot_made_from_another_state_than_asserted_is_not_moved(lake: Lake, late: Client):
    """The branch was to get what its parent has, and that is not in the snapshot's own manifests."""
    first, second = (each["snapshot-id"] for each in (await read(lake.catalog))[1]["snapshots"])
    branch = {"action": "set-snapshot-ref", "ref-name": "dev", "type": "branch", "snapshot-id": second}
    await change(lake.catalog, branch)
    rolled = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first}
    await change(lake.catalog, rolled)
    from_dev = Client(await load_table(lake.catalog, ROOT, T))
    await commit(lake.catalog, (await see(lake.catalog)).append("third"))
    body = from_dev.append("mine")
    body["updates"][0]["snapshot"]["parent-snapshot-id"] = second

    with pytest.raises(RequirementFailed, match="another state"):
        await commit(lake.catalog, body)

    assert (await read(lake.catalog))[0] == ["first", "third"]


async def test_of_many_only_those_that_lie_are_refused(lake: Lake, late: Client):
    bodies = [late.append(f"f{number:02d}") for number in range(12)]
    for body in bodies[::3]:
        own, *kept = lines(body)
        rewrite(late, body, [as_own(own, body), as_own(own, body), *kept])

    outcomes = await asyncio.gather(*(commit(lake.catalog, body) for body in bodies), return_exceptions=True)

    refused = [isinstance(each, RequirementFailed) for each in outcomes]
    assert refused == [number % 3 == 0 for number in range(12)]
    files, metadata, table = await read(lake.catalog)
    assert files == sorted(["first", "second", *(f"f{n:02d}" for n in range(12) if n % 3)])
    check_history(metadata)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for each in snapshot.manifests(table.io):
        assert each.fetch_manifest_entry(table.io)


async def test_counts_that_lie_make_no_row_ids_or_totals(lake: Lake, late: Client):
    body = late.append("mine")
    own, *kept = lines(body)
    rewrite(late, body, [as_own(own, body, added_rows=1_000_000), *kept])

    await commit(lake.catalog, body)

    _, metadata, _ = await read(lake.catalog)
    assert metadata["snapshots"][-1]["summary"]["added-records"] == "10"
    check_history(metadata)
    if "next-row-id" in metadata:
        assert metadata["next-row-id"] == 30


async def test_files_that_are_not_seen_as_added_are_not_lost(lake: Lake, late: Client):
    """A client that lists fewer files as added than it says it adds."""
    body = late.append("mine", **{"added-data-files": "2"})

    with pytest.raises(RequirementFailed, match="summary"):
        await commit(lake.catalog, body)
    await commit(lake.catalog, late.append("yours", **{"added-data-files": "1"}))

    assert (await read(lake.catalog))[0] == ["first", "second", "yours"]


async def test_a_table_dropped_while_they_wait_takes_nothing(lake: Lake, late: Client):
    bodies = [late.append(f"f{number}") for number in range(8)]

    outcomes = await asyncio.gather(
        *(commit(lake.catalog, body) for body in bodies[:4]),
        drop_table(lake.catalog, ROOT, T),
        *(commit(lake.catalog, body) for body in bodies[4:]),
        return_exceptions=True,
    )

    for each in outcomes:
        assert not isinstance(each, BaseException) or isinstance(each, CynosureError), each
    assert any(isinstance(each, NoSuchTable) for each in outcomes)
