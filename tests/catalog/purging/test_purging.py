"""Modes, rights, joining, and the name that is free meanwhile (I92, I93)."""

import asyncio
from datetime import timedelta

import pytest

from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import LocationRefused, NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.purge_errors import PurgeConflict, PurgeFailed, PurgeLifted, PurgeOff, PurgePending
from cynosure.catalog.purging.outbox import look_after_purges
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Unavailable
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.location import Location
from cynosure.testing.small_access import P, People, on_table
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_keys import with_key
from tests.catalog.purging.conftest import Purging
from tests.catalog.tables import T, change, decoded, make, properties

pytestmark = pytest.mark.anyio

OTHER = Identifier(("ns",), "other")


async def purge(purging: Purging, table: Identifier = T, caller=ROOT) -> None:
    await drop_table(purging.catalog, caller, table, is_purge_requested=True)


# --- modes ------------------------------------------------------------------------------------------------


async def test_async_is_answered_when_the_order_is_taken(purging: Purging):
    await make(purging.catalog)
    purging.use(mode="async")

    await purge(purging)

    assert len(purging.executor.orders) == 1
    assert (await purging.tombstone()).mode == "async"
    await purging.succeed()
    assert await look_after_purges(purging.catalog, ROOT) == 1
    assert await purging.find_tombstone() is None


async def test_async_is_refused_when_the_order_is_not_taken(purging: Purging):
    await make(purging.catalog)
    purging.use(mode="async")
    purging.executor.refusal = Unavailable("Connection refused")

    with pytest.raises(Unavailable):
        await purge(purging)

    await load_table(purging.catalog, ROOT, T)


async def test_fire_and_forget_is_answered_whoever_is_down_and_ends_later(purging: Purging):
    await make(purging.catalog)
    purging.use(mode="fire-and-forget")
    purging.executor.refusal = Unavailable("Connection refused")

    await purge(purging)

    with pytest.raises(NoSuchTable):
        await load_table(purging.catalog, ROOT, T)
    assert await look_after_purges(purging.catalog, ROOT) == 0
    purging.executor.refusal = None
    await look_after_purges(purging.catalog, ROOT)
    await purging.succeed()
    assert await look_after_purges(purging.catalog, ROOT) == 1


@pytest.mark.parametrize("mode", ["async", "fire-and-forget"])
async def test_who_was_told_that_it_is_dropped_does_not_see_it_come_back(purging: Purging, mode: str):
    await make(purging.catalog)
    purging.use(mode=mode)
    await purge(purging)
    await purging.executor.until(lambda: bool(purging.executor.orders))
    await purging.fail("CREDENTIAL_VENDING_FAILED", is_begun=False)

    assert await look_after_purges(purging.catalog, ROOT) == 0

    tombstone = await purging.tombstone()
    assert (tombstone.state, tombstone.last_error[:25]) == ("restorable", "CREDENTIAL_VENDING_FAILED")
    # Asking again tries again.
    await purge(purging)
    status_of = purging.executor.status_of
    await purging.executor.until(lambda: status_of(tombstone.task_id) is TaskStatus.RETRY_SCHEDULED)
    with pytest.raises(NoSuchTable):
        await load_table(purging.catalog, ROOT, T)


# --- who may, and where -----------------------------------------------------------------------------------


async def test_a_catalog_can_refuse_to_purge(purging: Purging):
    await make(purging.catalog)
    update = CatalogUpdate(set_properties={"polaris.config.drop-with-purge.enabled": "false"})
    await update_catalog(purging.directory, ROOT, "lake", update)
    catalog = await purging.directory.open(DEFAULT_REALM, "lake")

    with pytest.raises(PurgeOff, match=r"polaris\.config\.drop-with-purge\.enabled"):
        await drop_table(catalog, ROOT, T, is_purge_requested=True)

    await load_table(catalog, ROOT, T)
    await drop_table(catalog, ROOT, T)


async def test_who_may_not_purge_learns_nothing_and_joins_nothing(purging: Purging):
    people = People(purging.directory)
    await people.root()
    await make(purging.catalog)
    dropper = await people.add("ann", purging.catalog, *on_table(T, P.TABLE_DROP))
    purger = await people.add("bob", purging.catalog, *on_table(T, P.TABLE_DROP, P.TABLE_WRITE_DATA))
    with pytest.raises(AccessDenied):
        await purge(purging, caller=dropper)
    drop = await purging.start_drop()

    with pytest.raises(AccessDenied):
        await purge(purging, caller=dropper)
    # What was granted on the table counts for what is left of it.
    joined = asyncio.create_task(purge(purging, caller=purger))
    await purging.executor.until(lambda: len(purging.executor.orders) == 2)
    assert not joined.done()
    await purging.succeed()
    await asyncio.wait_for(asyncio.gather(drop, joined), 10)


async def test_what_never_was_is_not_found(purging: Purging):
    with pytest.raises(NoSuchTable):
        await purge(purging)


# --- joining ----------------------------------------------------------------------------------------------


async def test_all_who_ask_at_once_wait_for_one_purge(purging: Purging):
    await make(purging.catalog)
    drops = [asyncio.create_task(purge(purging)) for _ in range(5)]
    await purging.executor.until(lambda: len(purging.executor.orders) == 5)

    await purging.succeed()
    await asyncio.wait_for(asyncio.gather(*drops), 10)

    assert len({order.task_id for order in purging.executor.orders}) == 1


async def test_who_joins_while_the_service_is_away_is_not_told_that_it_failed(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    purging.executor.refusal = Unavailable("Connection refused")

    with pytest.raises(PurgePending):
        await purge(purging)

    assert (await purging.tombstone()).last_error == ""
    purging.executor.refusal = None
    await purging.succeed()
    await asyncio.wait_for(drop, 10)


async def test_a_repeated_key_joins_its_own_purge_and_hears_of_its_end(purging: Purging):
    await make(purging.catalog)
    purging.use(sync_timeout=timedelta(milliseconds=20))
    with pytest.raises(PurgePending):
        await purge(purging, caller=with_key(ROOT))
    old = await purging.tombstone()
    await make(purging.catalog)

    with pytest.raises(PurgePending):
        await purge(purging, caller=with_key(ROOT, is_repeat=True))
    await purging.succeed()
    await purge(purging, caller=with_key(ROOT, is_repeat=True))
    await purge(purging, caller=with_key(ROOT, is_repeat=True))

    assert {order.task_id for order in purging.executor.orders} == {old.task_id}
    await load_table(purging.catalog, ROOT, T)


async def test_a_repeated_key_is_refused_after_the_table_was_put_back(purging: Purging):
    await make(purging.catalog)
    purging.executor.refusal = Unavailable("Connection refused")
    with pytest.raises(Unavailable):
        await purge(purging, caller=with_key(ROOT))
    purging.executor.refusal = None

    with pytest.raises(PurgeLifted, match=r"Connection refused\..* new Idempotency-Key"):
        await purge(purging, caller=with_key(ROOT, is_repeat=True))

    await load_table(purging.catalog, ROOT, T)


# --- the name, and the table that has it now --------------------------------------------------------------


async def test_a_table_made_anew_under_the_name_is_another_one_elsewhere(purging: Purging):
    first = decoded(await make(purging.catalog))
    drop = await purging.start_drop()
    second = decoded(await make(purging.catalog))

    assert not Location.parse(second["location"]).is_within(Location.parse(first["location"]))
    with pytest.raises(LocationRefused):
        await make(purging.catalog, OTHER, location=first["location"])
    await purging.succeed()
    await asyncio.wait_for(drop, 10)

    assert decoded(await load_table(purging.catalog, ROOT, T))["table-uuid"] == second["table-uuid"]
    await change(purging.catalog, properties(k="v"))
    # The place is free now.
    await make(purging.catalog, OTHER, location=first["location"])


async def test_of_two_that_had_the_name_the_newer_one_is_joined(purging: Purging):
    await make(purging.catalog)
    first = await purging.start_drop()
    old = await purging.tombstone()
    await make(purging.catalog)
    second = await purging.start_drop()
    new = await purging.tombstone()

    third = await purging.start_drop()

    assert [order.task_id for order in purging.executor.orders] == [old.task_id, new.task_id, new.task_id]
    await purging.succeed()
    await asyncio.wait_for(asyncio.gather(second, third), 10)
    assert not first.done()
    await begin_purging(purging.catalog, ROOT, old.entity_id, old.task_id)
    await purging.executor.end(old.task_id)
    await asyncio.wait_for(first, 10)


async def test_what_cannot_be_put_back_waits_and_is_put_back_when_its_name_is_free(purging: Purging):
    first = decoded(await make(purging.catalog))
    drop = await purging.start_drop()
    await make(purging.catalog)
    await purging.executor.end(
        (await purging.tombstone()).task_id, TaskStatus.FAILURE, error_code="CREDENTIAL_VENDING_FAILED"
    )
    with pytest.raises(PurgeFailed, match="cynosure tables restore"):
        await asyncio.wait_for(drop, 10)
    tombstone = await purging.tombstone()

    assert tombstone.is_given_up
    assert "already exists" in tombstone.last_error
    with pytest.raises(PurgeConflict):
        await begin_purging(purging.catalog, ROOT, tombstone.entity_id, tombstone.task_id)
    await look_after_purges(purging.catalog, ROOT)
    assert await purging.tombstone() == tombstone
    await rename_table(purging.catalog, ROOT, T, OTHER)
    await look_after_purges(purging.catalog, ROOT)

    assert await purging.find_tombstone() is None
    assert decoded(await load_table(purging.catalog, ROOT, T))["table-uuid"] == first["table-uuid"]


async def test_what_lost_its_namespace_waits_to_be_restored(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    await drop_namespace(purging.catalog, ROOT, ("ns",))
    await purging.fail("CREDENTIAL_VENDING_FAILED", is_begun=False)
    with pytest.raises(PurgeFailed):
        await asyncio.wait_for(drop, 10)
    tombstone = await purging.tombstone()
    await create_namespace(purging.catalog, ROOT, ("again",), {})

    await restore_dropped(purging.catalog, ROOT, tombstone.drop_id, path=("again", "t"))

    await load_table(purging.catalog, ROOT, Identifier(("again",), "t"))
    assert await purging.find_tombstone() is None
