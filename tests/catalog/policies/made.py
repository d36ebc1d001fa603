"""Shorthand of the tests about policies."""

import msgspec

from cynosure.auth.caller import Caller
from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.list_applicable_policies import list_applicable_policies, place_of
from cynosure.catalog.policies.placing import AttachTo
from cynosure.testing.small_catalog import ROOT

NS = ("ns",)
COMPACTION, EXPIRY = "system.data-compaction", "system.snapshot-expiry"
ENABLED = '{"enable":true}'
CATALOG, NAMESPACE = AttachTo("catalog"), AttachTo("namespace", NS)
TABLE = AttachTo("table-like", ("ns", "t"))


def policy(name: str, namespace: tuple[str, ...] = NS) -> Identifier:
    return Identifier(namespace, name)


async def create(
    catalog: OpenCatalog, name: str, *, policy_type: str = COMPACTION, content: str = ENABLED
) -> PolicyEntity:
    return await create_policy(catalog, ROOT, CreatePolicy(policy(name), policy_type, content))


async def attach(catalog: OpenCatalog, name: str, to: AttachTo, **parameters: str) -> None:
    await attach_policy(catalog, ROOT, policy(name), to, parameters)


async def applicable(
    catalog: OpenCatalog, *path: str, caller: Caller = ROOT, policy_type: str = ""
) -> list[tuple[str, bool]]:
    """Names and whether inherited, of what counts for the catalog, a namespace `ns`, or a table `ns.t`."""
    name = path[1] if len(path) > 1 else None
    place = place_of(catalog, path[:1], name)
    page = await list_applicable_policies(catalog, caller, place, Paging(), policy_type=policy_type)
    return [(each.attached.name, each.is_inherited) for each in page.policies]


def names(body: bytes) -> list[str]:
    return [each["name"] for each in msgspec.json.decode(body)["identifiers"]]
