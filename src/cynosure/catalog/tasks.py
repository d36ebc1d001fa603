"""Long work as its operators see it: who may do something to a task.

Whoever manages access of the realm sees and manages all tasks; whoever manages the content of a catalog,
those of its tables.

Must not break: a caller without rights is refused in the same words whether there is such a task or not.
"""

from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import AccessDenied
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import NoSuchCatalog, NoSuchTask, RestrictedByPolicy
from cynosure.common.delegated.payload import decode_order
from cynosure.common.delegated.record import TaskDetails


class TaskRight(NamedTuple):
    """What something done to tasks needs: of the realm, or of the catalog that they are about."""

    of_realm: Operation
    of_catalog: Operation


READING = TaskRight(ops.READ_TASKS, ops.READ_CATALOG_TASKS)
MANAGING = TaskRight(ops.MANAGE_TASKS, ops.MANAGE_CATALOG_TASKS)


async def authorize_tasks(
    directory: Directory, caller: Caller, right: TaskRight, catalog: str | None
) -> None:
    """Refuse who may do this neither to all tasks nor to those of a catalog.

    What tasks did tells what is in tables, so who is restricted anywhere in the catalog is refused too.
    """
    try:
        await directory.authorize(caller, right.of_realm, RealmTarget(caller.realm))
    except AccessDenied as denied:
        if catalog is None:
            raise
        try:
            await directory.authorize_on(
                await directory.read(caller.realm), caller, right.of_catalog, catalog
            )
        except NoSuchCatalog:
            # Which catalogs there are is not for everybody to know.
            raise denied from None
        opened = await directory.open(caller.realm, catalog)
        await opened.authorize(await opened.read(), caller, right.of_catalog, opened.target())


async def find_task(directory: Directory, caller: Caller, right: TaskRight, task_id: str) -> TaskDetails:
    """A task that the caller may do this to; `NoSuchTask` when there is none."""
    task = await directory.shared.require_executor().find(caller.realm, task_id)
    try:
        await authorize_tasks(directory, caller, right, None if task is None else catalog_of(task))
    except RestrictedByPolicy:
        raise
    except AccessDenied:
        # In the words for a task that nobody knows: which catalog this one is about is told to no stranger.
        await authorize_tasks(directory, caller, right, None)
        raise
    if task is None:
        raise NoSuchTask(task_id)
    return task


def catalog_of(task: TaskDetails) -> str:
    """The name of the catalog that a task is about."""
    return decode_order(task.task_payload).table.catalog_name
