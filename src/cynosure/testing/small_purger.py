"""Purges tables at once, for tests that are not about how: it asks to begin, deletes the files, is done."""

from cynosure.auth.caller import operator_caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.file_access.modes import NOT_ASKED
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.load_tombstone import load_tombstone
from cynosure.common.delegated.payload import TaskOrder, as_flag
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.persistence.spi import ObjId, RealmId
from cynosure.storage.location import Location
from cynosure.testing.scripted_executor import ScriptedExecutor


def use_small_purger(directory: Directory) -> ScriptedExecutor:
    """Let the tables of these catalogs be purged as soon as that is ordered."""
    executor = ScriptedExecutor(directory.shared.persistence.clock, is_delegated=False)

    async def purge(order: TaskOrder) -> TaskStatus:
        if not as_flag(order.properties, "dryRun"):
            await purge_now(directory, order)
        return TaskStatus.SUCCESS

    executor.work = purge
    directory.shared.use_executor(executor)
    return executor


async def purge_now(directory: Directory, order: TaskOrder) -> None:
    """What a worker does, without what makes it last: leases, receipts, retries."""
    realm, entity_id = RealmId(order.realm), ObjId(int(order.table.table_entity_id))
    caller = operator_caller("purger", realm)
    catalog = await directory.open(realm, order.table.catalog_name)
    loaded = await load_tombstone(catalog, caller, entity_id, delegation=NOT_ASKED)
    await begin_purging(catalog, caller, entity_id, order.task_id)
    for place in map(Location.parse, loaded.dropped.places):
        await catalog.files.delete_many([file.location async for file in catalog.files.list(place)])
