"""Load a policy."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog import resolve
from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog


async def load_policy(catalog: OpenCatalog, caller: Caller, path: Identifier) -> PolicyEntity:
    """What it says now; `NoSuchPolicy` when there is none."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.LOAD_POLICY, catalog.policy(path))
    return await resolve.load_policy(state, path)
