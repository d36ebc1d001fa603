"""What dropping a namespace or a catalog with all it holds would drop, and what is in the way."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.cascading.plan import CascadePlan, weigh
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog


async def plan_namespace_cascade(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, *, is_purging: bool
) -> CascadePlan:
    """For who may drop the namespace; `NoSuchNamespace` when there is none."""
    await catalog.authorize(await catalog.read(), caller, ops.DROP_NAMESPACE, catalog.namespace(namespace))
    return (await weigh(catalog, caller, namespace, is_purging=is_purging)).plan


async def plan_catalog_cascade(
    directory: Directory, caller: Caller, name: str, *, is_purging: bool
) -> CascadePlan:
    """For who may drop the catalog; `NoSuchCatalog` when there is none."""
    await directory.authorize_on(await directory.read(caller.realm), caller, ops.DROP_CATALOG, name)
    catalog = await directory.open(caller.realm, name)
    return (await weigh(catalog, caller, (), is_purging=is_purging)).plan
