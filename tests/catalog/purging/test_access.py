"""Whoever purges a table reaches its places, nothing else, for as long as it is to be purged (I91, I93)."""

from pathlib import Path

import msgspec
import pytest

from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.bulk_import import ListedTable, import_tables
from cynosure.catalog.errors import LocationRefused, NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.operations.load_tombstone import load_tombstone, load_tombstone_credentials
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.purge_errors import NoSuchTombstone
from cynosure.catalog.purging.purge import begin_purge
from cynosure.common.errors import BadInput
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.purging.conftest import Purging
from tests.catalog.tables import T, change, decoded, make
from tests.catalog.world import open_lake

pytestmark = pytest.mark.anyio


async def test_credentials_are_for_all_places_of_the_table_to_write_and_end_with_the_tombstone(
    purging: Purging,
):
    vendor = MemoryVendor()
    catalog = vending(purging.catalog, vendor)
    elsewhere = catalog.base.child("elsewhere").text
    made = decoded(await make(catalog, properties={"write.data.path": elsewhere}))
    await make(catalog, Identifier(("ns",), "neighbour"))
    purging.use(mode="async")
    await begin_purge(catalog, ROOT, T)
    tombstone = await purging.tombstone()

    loaded = await load_tombstone(catalog, ROOT, tombstone.entity_id)
    renewed = await load_tombstone_credentials(catalog, ROOT, tombstone.entity_id)

    assert set(loaded.dropped.places) == {made["location"], elsewhere}
    assert loaded.access.vended == renewed
    ((scope, subject),) = vendor.minted
    assert {each.text for each in scope.locations} == set(loaded.dropped.places)
    assert scope.is_writable
    assert subject.table == "ns.t"
    await restore_dropped(catalog, ROOT, tombstone.drop_id)
    for load in (load_tombstone, load_tombstone_credentials):
        with pytest.raises(NoSuchTombstone):
            await load(catalog, ROOT, tombstone.entity_id)


async def test_a_place_that_the_catalog_does_not_allow_any_more_is_not_given(purging: Purging):
    base = purging.catalog.base.text
    allowed = (base, f"{base}-more")
    await update_catalog(
        purging.directory, ROOT, "lake", CatalogUpdate(storage=FileStorage(allowed_locations=allowed))
    )
    catalog = vending(await purging.directory.open(DEFAULT_REALM, "lake"), MemoryVendor())
    await make(catalog, location=f"{allowed[1]}/t")
    purging.use(mode="async")
    await begin_purge(catalog, ROOT, T)
    tombstone = await purging.tombstone()
    await update_catalog(
        purging.directory, ROOT, "lake", CatalogUpdate(storage=FileStorage(allowed_locations=allowed[:1]))
    )
    catalog = vending(await purging.directory.open(DEFAULT_REALM, "lake"), MemoryVendor())

    with pytest.raises(LocationRefused):
        await load_tombstone(catalog, ROOT, tombstone.entity_id)


async def test_a_table_that_moved_is_purged_where_it_was_too(purging: Purging):
    first = decoded(await make(purging.catalog))["location"]
    second = purging.catalog.base.child("moved").text
    await change(purging.catalog, {"action": "set-location", "location": second})
    purging.use(mode="async")
    await begin_purge(purging.catalog, ROOT, T)

    loaded = await load_tombstone(purging.catalog, ROOT, (await purging.tombstone()).entity_id)

    assert loaded.dropped.places == (second, first)


async def test_with_hidden_existence_who_may_not_see_a_purge_is_told_that_there_is_no_table(tmp_path):
    async with open_lake(tmp_path, AuthSettings(hide_existence=True)) as lake:
        executor = lake.directory.shared.executor
        assert isinstance(executor, ScriptedExecutor)
        executor.work = None
        stranger = await lake.people.add("ann", lake.catalog, *on_namespace(("other",), P.TABLE_DROP))
        lister = await lake.people.add("bob", lake.catalog, *on_table(T, P.TABLE_LIST))
        purger = await lake.people.add("eve", lake.catalog, *on_table(T, P.TABLE_DROP, P.TABLE_WRITE_DATA))
        await begin_purge(lake.catalog, ROOT, T)

        with pytest.raises(NoSuchTable) as unseen:
            await begin_purge(lake.catalog, stranger, T)
        with pytest.raises(AccessDenied):
            await begin_purge(lake.catalog, lister, T)
        joined = await begin_purge(lake.catalog, purger, T)

        assert isinstance(unseen.value.__cause__, AccessDenied)
        assert not joined.is_own
        assert len({order.task_id for order in executor.orders}) == 1


async def test_rights_on_the_table_that_is_gone_are_not_enough_to_load_it(purging: Purging, tmp_path):
    async with open_lake(tmp_path / "other") as lake:
        executor = lake.directory.shared.executor
        assert isinstance(executor, ScriptedExecutor)
        executor.work = None
        on_it = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_DROP, P.TABLE_WRITE_DATA))
        service = await lake.people.add("svc", lake.catalog, *on_catalog(P.TABLE_DROP, P.TABLE_WRITE_DATA))
        made = await begin_purge(lake.catalog, ROOT, T)

        with pytest.raises(AccessDenied):
            await load_tombstone(lake.catalog, on_it, made.tombstone.entity_id)
        loaded = await load_tombstone(lake.catalog, service, made.tombstone.entity_id)

        assert loaded.tombstone == made.tombstone


async def test_a_table_of_which_only_the_file_is_known_is_read_before_it_is_purged(
    purging: Purging, tmp_path: Path
):
    catalog = await make_catalog(purging.directory, tmp_path, "imported")
    location = catalog.base.child("t")
    file = location.child("metadata", "00003-x.metadata.json")
    metadata = {**decoded(await make(purging.catalog)), "location": location.text}
    await import_tables(catalog, ROOT, [ListedTable(T, file.text, location.text)])
    with pytest.raises(BadInput, match="no metadata file"):
        await begin_purge(catalog, ROOT, T)
    assert (await list_tombstones(catalog, ROOT, size=5)).entries == []
    await catalog.files.write(file, msgspec.json.encode(metadata))

    made = await begin_purge(catalog, ROOT, T)

    assert made.tombstone.table_uuid == metadata["table-uuid"]
    assert made.tombstone.metadata_location == file.text
    loaded = await load_tombstone(catalog, ROOT, made.tombstone.entity_id)
    assert loaded.table.state.table_uuid == metadata["table-uuid"]
