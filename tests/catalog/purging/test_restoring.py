"""A table is restored until its purge has begun; what is kept meanwhile, and word of the end (I91)."""

import asyncio

import pytest

from cynosure.catalog.errors import CatalogNotEmpty
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.locations import location_key
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.end_purging import end_purging
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_tombstone import load_tombstone
from cynosure.catalog.operations.report_metrics import Report, report_metrics
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.purge_errors import (
    LocationShared,
    NoSuchTombstone,
    PurgeConflict,
    PurgeFailed,
    PurgeIncomplete,
)
from cynosure.catalog.purging.outbox import look_after_purges
from cynosure.catalog.purging.tombstone import PURGES
from cynosure.catalog.reports import reports_committer
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import NotFound, Unavailable
from cynosure.persistence.commit import Prepared, Request, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT
from tests.catalog.purging.conftest import Purging
from tests.catalog.tables import T, decoded, make

pytestmark = pytest.mark.anyio

OTHER = Identifier(("ns",), "other")


async def purge(purging: Purging, table: Identifier = T, caller=ROOT) -> None:
    await drop_table(purging.catalog, caller, table, is_purge_requested=True)


# --- restoring --------------------------------------------------------------------------------------------


async def test_a_table_is_restored_until_it_is_purging_and_not_after(purging: Purging):
    made = await make(purging.catalog)
    drop = await purging.start_drop()
    tombstone = await purging.tombstone()
    await restore_dropped(purging.catalog, ROOT, tombstone.drop_id)

    assert (await load_table(purging.catalog, ROOT, T)).load_body() == made.load_body()
    # The worker comes too late, whatever it was told before.
    with pytest.raises(NoSuchTombstone):
        await load_tombstone(purging.catalog, ROOT, tombstone.entity_id)
    with pytest.raises(NoSuchTombstone):
        await begin_purging(purging.catalog, ROOT, tombstone.entity_id, tombstone.task_id)
    await purging.executor.end(tombstone.task_id, TaskStatus.FAILURE, error_code="TOMBSTONE_GONE")
    with pytest.raises(PurgeFailed, match="restored by root"):
        await asyncio.wait_for(drop, 10)

    again = await purging.start_drop()
    newer = await purging.tombstone()
    assert newer.task_id != tombstone.task_id
    with pytest.raises(PurgeConflict, match="Another task"):
        await begin_purging(purging.catalog, ROOT, tombstone.entity_id, tombstone.task_id)
    await purging.begin()
    with pytest.raises(PurgeConflict, match=newer.task_id):
        await restore_dropped(purging.catalog, ROOT, newer.drop_id)
    await purging.executor.end(newer.task_id)
    await asyncio.wait_for(again, 10)


async def test_restoring_and_beginning_at_once_one_of_them_wins(purging: Purging):
    for _ in range(5):
        await make(purging.catalog)
        purging.use(mode="async")
        await purge(purging)
        tombstone = await purging.tombstone()
        begun, restored = await asyncio.gather(
            begin_purging(purging.catalog, ROOT, tombstone.entity_id, tombstone.task_id),
            restore_dropped(purging.catalog, ROOT, tombstone.drop_id),
            return_exceptions=True,
        )

        assert isinstance(begun, NotFound) != isinstance(restored, PurgeConflict), (begun, restored)
        if isinstance(begun, NotFound):
            await drop_table(purging.catalog, ROOT, T)


async def test_beginning_again_is_the_same_and_changes_nothing(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    await purging.begin()
    head = (await purging.catalog.read()).commit_id

    await purging.begin()

    assert (await purging.catalog.read()).commit_id == head
    await purging.succeed()
    await asyncio.wait_for(drop, 10)


async def test_what_somebody_else_has_a_part_of_is_not_purged(purging: Purging):
    """Cannot come to be by any operation: so damage, or a mistake of ours, deletes nothing."""
    made = decoded(await make(purging.catalog))
    stranger = location_key(Location.parse(made["location"]).child("data"))

    async def intrude(view: View) -> Prepared[None]:
        return Prepared(None, {"locations": {stranger: encode_id_key(ObjId(12345))}})

    await purging.catalog.committer.commit(Request(intrude, "root", operation="test"))
    drop = await purging.start_drop()
    with pytest.raises(LocationShared):
        await purging.begin()

    await purging.fail("LOCATION_SHARED", is_begun=False)
    with pytest.raises((PurgeFailed, PurgeIncomplete), match="LOCATION_SHARED"):
        await asyncio.wait_for(drop, 10)


# --- what is kept, and for how long -----------------------------------------------------------------------


async def test_what_is_to_be_purged_is_not_forgotten_and_what_was_purged_leaves_no_reports(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    await make(purging.catalog)
    await report_metrics(purging.catalog, ROOT, T, Report("scan-report", b'{"report-type":"scan-report"}'))
    await make(purging.catalog, OTHER)
    await drop_table(purging.catalog, ROOT, OTHER)
    drop = await purging.start_drop()
    with monkeypatch.context() as later:
        later.setattr(type(purging.catalog), "dropped_since_us", lambda _: 2**60)
        assert await forget_dropped(purging.catalog, ROOT) == 1

    ((_, entity),) = (await list_dropped(purging.catalog, ROOT, size=5)).entries
    assert entity.path == ("ns", "t")
    await purging.succeed()
    await asyncio.wait_for(drop, 10)
    assert await (await reports_committer(purging.catalog).read()).state.scan("reports", limit=5) == []


async def test_a_catalog_whose_tables_are_being_purged_is_not_dropped(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    await drop_namespace(purging.catalog, ROOT, ("ns",))

    with pytest.raises(CatalogNotEmpty, match=r"ns\.t"):
        await drop_catalog(purging.directory, ROOT, "lake")

    await purging.succeed()
    await asyncio.wait_for(drop, 10)
    await drop_catalog(purging.directory, ROOT, "lake")


async def test_traces_of_what_was_put_back_go_after_a_while(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    await make(purging.catalog)
    purging.executor.refusal = Unavailable("Connection refused")
    with pytest.raises(Unavailable):
        await purge(purging)
    await look_after_purges(purging.catalog, ROOT)
    assert len(await (await purging.catalog.read()).scan(PURGES, limit=5)) == 1

    monkeypatch.setattr(type(purging.catalog), "dropped_since_us", lambda _: 2**60)
    await look_after_purges(purging.catalog, ROOT)

    assert await (await purging.catalog.read()).scan(PURGES, limit=5) == []


async def test_tombstones_are_listed_in_pages_without_what_was_put_back(purging: Purging):
    purging.use(mode="async")
    names = [f"t{number}" for number in range(5)]
    for name in names:
        await make(purging.catalog, Identifier(("ns",), name))
        await purge(purging, Identifier(("ns",), name))
    purging.executor.refusal = Unavailable("Connection refused")
    await make(purging.catalog)
    with pytest.raises(Unavailable):
        await purge(purging)
    found, token = [], None
    while True:
        page = await list_tombstones(purging.catalog, ROOT, size=2, token=token)
        found += [each.path[-1] for each in page.entries]
        token = page.next_token
        if token is None:
            break

    assert sorted(found) == names


async def test_the_change_feed_tells_of_the_drop_the_return_and_the_last_file(purging: Purging):
    start = (await read_changes(purging.catalog, ROOT)).cursor
    await make(purging.catalog)
    purging.executor.refusal = Unavailable("Connection refused")
    with pytest.raises(Unavailable):
        await purge(purging)
    purging.executor.refusal = None
    drop = await purging.start_drop()
    await purging.succeed()
    await asyncio.wait_for(drop, 10)

    changes = (await read_changes(purging.catalog, ROOT, start=start)).changes

    told = ["table-created", "table-dropped", "table-restored", "table-dropped", "table-purged"]
    assert [each.kind for each in changes] == told
    assert {(each.namespace, each.name) for each in changes} == {(("ns",), "t")}
    assert len({each.entity_id for each in changes}) == 1


# --- word of the end --------------------------------------------------------------------------------------


async def test_word_of_the_end_is_followed_at_once_and_believed_from_nobody(purging: Purging):
    await make(purging.catalog)
    purging.use(mode="async")
    await purge(purging)
    tombstone = await purging.tombstone()
    with pytest.raises(PurgeConflict):
        await end_purging(purging.catalog, ROOT, tombstone.entity_id, "another")
    await end_purging(purging.catalog, ROOT, tombstone.entity_id, tombstone.task_id)
    await asyncio.sleep(0.02)
    assert await purging.find_tombstone() is not None

    await purging.succeed()
    await end_purging(purging.catalog, ROOT, tombstone.entity_id, tombstone.task_id)
    async with asyncio.timeout(30):
        while await purging.find_tombstone() is not None:  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.01)
