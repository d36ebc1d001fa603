"""Backfilling, moving and forgetting, without anybody asking a remote (I118)."""

from typing import Any

import msgspec
import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.saving import pack_table
from cynosure.catalog.names import Identifier, table_key, view_key
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.resolve import require_table_ref
from cynosure.common.errors import CynosureError
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.mirror import (
    backfill_table,
    backfill_view,
    forget_namespace,
    forget_table,
    move_table,
)
from cynosure.federation.mirror.seen import SeenMeanwhile, find_seen
from cynosure.federation.remote import RemoteTable, Tag
from cynosure.iceberg.metadata import TableMetadata
from cynosure.testing.remote_samples import Stage, plan_view, replacing
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, OTHER_UUID, Far, T

pytestmark = pytest.mark.anyio

V = Identifier(NS, "v")


async def test_properties_that_are_no_text_are_left_out(far: Far) -> None:
    # As a metastore sends them, whose database keeps another encoding.
    far.remote.namespaces[NS] = {"comment": b"K\xf6ln".decode("utf-8", "surrogateescape"), "owner": "ann"}

    await far.federation.see_namespace(far.catalog, ROOT, NS)

    assert (await load_namespace(far.catalog, ROOT, NS)).properties == {"owner": "ann"}


async def test_the_same_version_is_not_committed_twice(far: Far) -> None:
    there = far.put()
    await backfill_table(far.catalog, ROOT, T, there)
    commits = await far.count_commits()

    again = await backfill_table(far.catalog, ROOT, T, there)

    assert await far.count_commits() == commits
    assert again.metadata.table_uuid == there.metadata.table_uuid


async def test_an_older_version_does_not_overwrite_a_later_one_by_itself(far: Far) -> None:
    older, later = far.put(), far.put(name="v2", **{"last-updated-ms": 5})
    await backfill_table(far.catalog, ROOT, T, later)

    kept = await backfill_table(far.catalog, ROOT, T, older)

    assert kept.metadata.properties == {"version": "v2"}


async def test_an_older_version_of_a_view_does_not_overwrite_a_later_one_by_itself(far: Far) -> None:
    older = far.remote.put_view(V, plan_view(Stage(far.remote, far.catalog.base.text), V))
    later = await far.remote.commit_view(replacing(V, older))
    await backfill_view(far.catalog, ROOT, V, later)
    known = await find_seen(await far.catalog.read(), view_key(V))

    # As two who replace it at once come back, the first of them last.
    kept = await backfill_view(far.catalog, ROOT, V, older)

    assert kept.metadata_location == later.tag.metadata_location
    back = await backfill_view(far.catalog, ROOT, V, older, expected=known)
    assert back.metadata_location == older.tag.metadata_location
    again = await backfill_view(far.catalog, ROOT, V, later)
    assert again.metadata_location == later.tag.metadata_location


async def test_a_change_of_a_table_with_many_snapshots_stores_the_new_ones_only(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = [
        {"snapshot-id": n, "timestamp-ms": n, "manifest-list": far.catalog.base.child("orders", f"{n}").text}
        for n in range(1, 202)
    ]
    stored: list[int] = []

    def note(metadata: TableMetadata, **more: Any) -> Any:
        table, objects = pack_table(metadata, **more)
        stored.append(len(objects))
        return table, objects

    monkeypatch.setattr("cynosure.catalog.files.versions.pack_table", note)
    for count in (200, 201):
        there = far.put(name=f"v{count}", snapshots=snapshots[:count])
        last = await backfill_table(far.catalog, ROOT, T, there)

    assert stored[0] > 10
    assert stored[1] == 1  # the state, with the chunk that grows
    far.catalog.shared.tables.clear()
    ref = await require_table_ref(await far.catalog.read(), T)
    again = await load_table_at(await far.catalog.read(), ref.id, far.catalog.shared.tables)
    assert again.metadata == last.metadata == there.metadata


async def test_a_remote_that_went_back_is_believed_by_who_knows_what_was_there(far: Far) -> None:
    older, later = far.put(), far.put(name="v2", **{"last-updated-ms": 5})
    await backfill_table(far.catalog, ROOT, T, later)
    known = await find_seen(await far.catalog.read(), table_key(T))

    back = await backfill_table(far.catalog, ROOT, T, older, expected=known)

    assert back.metadata.properties == {"version": "v1"}
    with pytest.raises(SeenMeanwhile):
        await backfill_table(far.catalog, ROOT, T, later, expected=known)


async def test_a_table_without_a_metadata_file_is_not_believed(far: Far) -> None:
    with pytest.raises(RemoteMisbehaved):
        await backfill_table(far.catalog, ROOT, T, RemoteTable(far.metadata(), Tag()))


async def test_what_is_forgotten_cannot_be_restored_over_what_is_there_now(far: Far) -> None:
    await backfill_table(far.catalog, ROOT, T, far.put())
    await forget_table(far.catalog, ROOT, T)
    await forget_table(far.catalog, ROOT, T)
    ((drop_id, _),) = (await list_dropped(far.catalog, ROOT, size=10)).entries

    with pytest.raises(CynosureError):
        await restore_dropped(far.catalog, ROOT, drop_id)

    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ROOT, T)


async def test_a_moved_table_takes_the_place_of_another(far: Far) -> None:
    ours = far.put()
    await backfill_table(far.catalog, ROOT, T, ours)
    other = Identifier(("b", "c"), "other")
    await backfill_table(far.catalog, ROOT, other, far.put(other, at="other", uuid=OTHER_UUID))
    before = await far.id_of(T)

    with pytest.raises(SeenMeanwhile):
        await move_table(far.catalog, ROOT, T, other, OTHER_UUID)
    await move_table(far.catalog, ROOT, T, other, ours.uuid)
    await move_table(far.catalog, ROOT, T, other, ours.uuid)

    assert await far.id_of(other) == before
    assert await far.disagreements() == []


async def test_a_namespace_with_policies_of_ours_stays(far: Far) -> None:
    await backfill_table(far.catalog, ROOT, T, far.put())
    content = msgspec.json.encode({"enable": True}).decode()
    policy = CreatePolicy(Identifier(NS, "p"), "system.data-compaction", content)
    await create_policy(far.catalog, ROOT, policy)

    await forget_namespace(far.catalog, ROOT, NS)

    assert await load_namespace(far.catalog, ROOT, NS)
    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ROOT, T)
    assert await far.disagreements() == []
