"""A remote says once that a namespace is not there: no restriction ends by that."""

from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.policies.placing import AttachTo
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, Far, T
from tests.federation.served import BASE, client_of

pytestmark = pytest.mark.anyio

RULES = ("rules",)
FILTER = Identifier(RULES, "own-rows")


async def load_restrictions(far: Far, caller: Caller) -> Any:
    await far.see(caller)
    answer = await load_table(far.catalog, caller, T)
    return msgspec.json.decode(answer.load_body()).get("read-restrictions")


@pytest.mark.parametrize("target", [AttachTo("namespace", NS), AttachTo("table-like", (*NS, T.name))])
async def test_a_filter_outlives_a_namespace_that_comes_and_goes(far: Far, target: AttachTo) -> None:
    far.put()
    far.remote.namespaces[RULES] = {}
    await far.see()
    await far.federation.see_namespace(far.catalog, ROOT, RULES)
    content = msgspec.json.encode({"enable": True, "filter": "data = current_user()"}).decode()
    await create_policy(far.catalog, ROOT, CreatePolicy(FILTER, "cynosure.row-filter", content))
    await attach_policy(far.catalog, ROOT, FILTER, target)
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_READ_DATA))
    before = await load_restrictions(far, ann)
    tables, namespaces = dict(far.remote.tables), dict(far.remote.namespaces)
    far.remote.tables.clear()
    far.remote.namespaces.clear()
    await far.federation.see_namespace(far.catalog, ROOT, NS, is_fresh=True)
    await far.federation.see_table(far.catalog, ann, T, is_fresh=True)

    far.remote.tables |= tables
    far.remote.namespaces |= namespaces
    await far.federation.see_table(far.catalog, ann, T, is_fresh=True)

    assert before is not None
    assert await load_restrictions(far, ann) == before
    assert await far.disagreements() == []


async def test_a_namespace_that_somebody_drops_here_is_gone_with_what_is_attached(far: Far) -> None:
    far.remote.namespaces[NS] = {}
    far.remote.namespaces[RULES] = {}
    for each in (NS, RULES):
        await far.federation.see_namespace(far.catalog, ROOT, each)
    content = msgspec.json.encode({"enable": True, "filter": "data = current_user()"}).decode()
    await create_policy(far.catalog, ROOT, CreatePolicy(FILTER, "cynosure.row-filter", content))
    await attach_policy(far.catalog, ROOT, FILTER, AttachTo("namespace", NS))
    async with client_of(far) as root:
        dropped = await root.delete(f"{BASE}/v1/far/namespaces/ns")
        loaded = await root.get(f"{BASE}/v1/far/namespaces/ns")

    assert (dropped.status_code, loaded.status_code) == (204, 404)
    assert await far.disagreements() == []
