"""List the policies of a namespace."""

from collections.abc import Sequence

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.entities import POLICY
from cynosure.catalog.listing import Listing, Paging, list_chosen, list_encoded
from cynosure.catalog.names import Namespace, policies_prefix
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policy_types import get_policy_type
from cynosure.persistence.commit import State
from cynosure.persistence.objects import ObjRef


async def list_policies(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, paging: Paging, *, policy_type: str = ""
) -> bytes:
    """JSON of the names in their order, of one type where it is named.

    `NoSuchNamespace` without one, `BadInput` for a type that is not known.
    """
    listing = Listing(ops.LIST_POLICIES, namespace, policies_prefix(namespace))
    if not policy_type:
        return await list_encoded(catalog, caller, listing, paging)
    get_policy_type(policy_type, field="policyType")

    async def choose(state: State, keys: Sequence[bytes]) -> list[bytes]:
        found = [(key, await state.find("names", key)) for key in keys]
        there = [(key, ObjRef.unpack(value).id) for key, value in found if value is not None]
        policies = await state.load_many(POLICY, [each for _, each in there])
        return [key for (key, _), each in zip(there, policies, strict=True) if each.type == policy_type]

    return await list_chosen(catalog, caller, listing, paging, choose)
