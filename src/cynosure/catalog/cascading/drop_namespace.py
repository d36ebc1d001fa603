"""Drop a namespace with all it holds.

Everything goes by the operation that drops it alone, with the rights that needs, and can be restored as then.
A repeated request goes on where an earlier one stopped.

Must not break: the last step, and it alone, carries the Idempotency-Key: it is in the chain when all is gone.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing, without_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.cascading.emptying import Emptying
from cynosure.catalog.errors import OwnedElsewhere
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_namespace import drop_namespace


async def drop_namespace_cascade(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, *, is_purging: bool = False
) -> None:
    """Drop it and all below; `is_purging`: the files of its tables too.

    In the mode `sync` the answer waits for the last file, as long as one drop waits, then it is
    `CascadeUnderWay`. `CascadeDenied` and `CascadeBlocked` name what is in the way.
    """
    check = catalog.checking(caller, ops.DROP_NAMESPACE, catalog.namespace(namespace))
    if await find_recalled(catalog.committer, caller, check=check, recall=NOTHING) is not None:
        return
    async with refusing(catalog.committer, caller, ops.DROP_NAMESPACE.name):
        await check(await catalog.read())
        end_rehearsal(caller)
        if catalog.is_federated:
            # Dropped here only, all of it would be seen again with the next look at the remote.
            raise OwnedElsewhere("drop-namespace-cascade")
        is_waiting = is_purging and catalog.shared.delegation.mode == "sync"
        emptying = Emptying(
            catalog, without_key(caller), namespace, is_purging=is_purging, is_waiting=is_waiting
        )
        await emptying.run(await emptying.weigh())
    await drop_namespace(catalog, caller, namespace)
