"""A remote puts another table under a name between our look at it and the change that follows."""

from typing import Any

import pytest

from cynosure.catalog.names import Identifier
from cynosure.testing.remote_kit import Stage, plan_view
from cynosure.testing.small_access import P, on_table, on_view
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, OTHER_UUID, Far, T
from tests.federation.served import BASE, client_of

pytestmark = pytest.mark.anyio

FAR = f"{BASE}/v1/far"
V = Identifier(NS, "v")
SET = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"touched": "ann"}}]}
NAME = {"namespace": [*NS], "name": T.name}


def swap_behind(far: Far, call: str, act: Any) -> None:
    """Let the remote change something right before it hears this."""
    inner = getattr(far.remote, call)

    async def later(*args: Any, **more: Any) -> Any:
        act()
        return await inner(*args, **more)

    setattr(far.remote, call, later)


@pytest.mark.parametrize(
    ("call", "path", "body"),
    [
        ("commit_table", "/namespaces/ns/tables/orders", SET),
        ("commit_transaction", "/transactions/commit", {"table-changes": [{"identifier": NAME, **SET}]}),
    ],
)
async def test_a_change_hits_the_table_that_was_looked_at_or_none(
    far: Far, call: str, path: str, body: Any
) -> None:
    far.put()
    await far.see()
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_FULL_METADATA, P.TABLE_WRITE_DATA))
    swap_behind(far, call, lambda: far.put(uuid=OTHER_UUID))
    async with client_of(far, ann) as client:
        refused = await client.post(f"{FAR}{path}", json=body)

    assert refused.status_code == 409, refused.text
    assert "touched" not in far.remote.tables[T].metadata.properties


async def test_a_view_is_replaced_only_if_it_is_the_one_that_was_looked_at(far: Far) -> None:
    stage = Stage(far.remote, far.catalog.base.text)
    far.remote.put_view(V, plan_view(stage, V))
    await far.federation.see_view(far.catalog, ROOT, V)
    ann = await far.people.add("ann", far.catalog, *on_view(V, P.VIEW_FULL_METADATA))
    swap_behind(far, "commit_view", lambda: far.remote.put_view(V, plan_view(stage, V)))
    async with client_of(far, ann) as client:
        refused = await client.post(f"{FAR}/namespaces/ns/views/v", json=SET)

    assert refused.status_code == 409, refused.text
    assert "touched" not in far.remote.views[V].metadata.properties
