"""Drop a catalog with all it holds.

Everything goes by the operation that drops it alone, with the rights that needs. A repeated request goes on
where an earlier one stopped.

Must not break: purges are waited for in every mode. With the catalog their tombstones would go, and files
would stay that nobody knows of.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing, without_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.cascading.emptying import Emptying
from cynosure.catalog.closing import require_not_adopting, require_not_moving
from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.drop_catalog import checking_drop, drop_catalog


async def drop_catalog_cascade(
    directory: Directory, caller: Caller, name: str, *, is_purging: bool = False
) -> None:
    """Drop it and all in it; `is_purging`: the files of its tables too.

    The answer waits for all purges as long as one drop waits, then it is `CascadeUnderWay`. `CascadeDenied`
    and `CascadeBlocked` name what is in the way.
    """
    committer, check = directory.committer(caller.realm), checking_drop(directory, caller, name)
    if await find_recalled(committer, caller, check=check, recall=NOTHING) is not None:
        return
    async with refusing(committer, caller, ops.DROP_CATALOG.name):
        await check(await directory.read(caller.realm))
        end_rehearsal(caller)
        catalog = await directory.open(caller.realm, name)
        await require_not_adopting(await catalog.read(), name)
        if catalog.is_federated:
            await require_not_moving(await catalog.read(), name)
        emptying = Emptying(catalog, without_key(caller), (), is_purging=is_purging, is_waiting=True)
        await emptying.run(await emptying.weigh())
    await drop_catalog(directory, caller, name)
