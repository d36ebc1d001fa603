"""Whoever was restricted since is not told again what it was told before: I76 with I50 to I54.

Rights are looked up as they are now, on names as they were then. What restricts somebody is attached to
tables, and so it is in the very state that names are looked up in.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.api.world import World
from tests.robustness.attacks.idempotency.lake import (
    CHANGE,
    LAKE,
    NAMESPACES,
    POLICIES,
    SCHEMA,
    TABLES,
    error_type,
    is_replayed,
    keyed,
    told,
)

pytestmark = pytest.mark.anyio

ROW_FILTER = ("cynosure.row-filter", {"filter": "id > 10"})
COLUMN_MASK = ("cynosure.column-mask", {"columns": {"ssn": "show-last-4"}})
PLACES: dict[str, dict[str, Any]] = {
    "table": {"type": "table-like", "path": ["ns", "t"]},
    "namespace": {"type": "namespace", "path": ["ns"]},
    "catalog": {"type": "catalog", "path": []},
}


@pytest.fixture
async def ann(world: World, root: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who may do everything to the content of the catalog."""
    credential = await world.admin(root).create_user("ann", "lake", Grant("CATALOG_MANAGE_CONTENT"))
    async with await world.login(credential) as client:
        yield client


async def restrict(
    root: httpx.AsyncClient, place: str = "table", kind: tuple[str, dict[str, Any]] = ROW_FILTER
) -> None:
    """Hide something of a table from ann."""
    policy_type, content = kind
    body = {
        "name": "p",
        "type": policy_type,
        "content": json.dumps({"enable": True, "roles": ["ann_role"], **content}),
    }
    made = await root.post(POLICIES, json=body)
    assert made.status_code == 200, made.text
    attached = await root.put(f"{POLICIES}/p/mappings", json={"target": PLACES[place]})
    assert attached.status_code == 204, attached.text


def assert_refused(answer: httpx.Response) -> None:
    assert (answer.status_code, error_type(answer)) == (403, "ForbiddenException"), answer.text
    assert "ns.p" in answer.text
    assert not is_replayed(answer)


@pytest.mark.parametrize("kind", [ROW_FILTER, COLUMN_MASK], ids=["filter", "mask"])
@pytest.mark.parametrize("place", PLACES)
async def test_a_commit_is_not_told_again_to_who_is_restricted_since(
    root: httpx.AsyncClient, ann: httpx.AsyncClient, place: str, kind: tuple[str, dict[str, Any]]
) -> None:
    """The answer has the whole metadata: summaries and statistics of rows that are hidden by now."""
    first = await ann.post(f"{TABLES}/t", json=CHANGE, headers=keyed())
    before = await ann.post(f"{TABLES}/t", json=CHANGE, headers=keyed())
    await restrict(root, place, kind)

    again = await ann.post(f"{TABLES}/t", json=CHANGE, headers=keyed())

    assert first.status_code == 200, first.text
    assert told(before) == told(first)
    assert_refused(again)


async def test_neither_is_a_transaction(root: httpx.AsyncClient, ann: httpx.AsyncClient) -> None:
    changes = {"table-changes": [{"identifier": {"namespace": ["ns"], "name": "t"}, **CHANGE}]}
    first = await ann.post(f"{LAKE}/transactions/commit", json=changes, headers=keyed())
    await restrict(root)

    again = await ann.post(f"{LAKE}/transactions/commit", json=changes, headers=keyed())

    assert first.status_code == 204, first.text
    assert_refused(again)


async def test_a_table_that_was_moved_since_is_restricted_where_it_is_now(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    await root.post(NAMESPACES, json={"namespace": ["other"]})
    first = await ann.post(f"{TABLES}/t", json=CHANGE, headers=keyed())
    renamed = {
        "source": {"namespace": ["ns"], "name": "t"},
        "destination": {"namespace": ["other"], "name": "u"},
    }
    assert (await root.post(f"{LAKE}/tables/rename", json=renamed)).status_code == 204
    PLACES["elsewhere"] = {"type": "namespace", "path": ["other"]}
    try:
        await restrict(root, "elsewhere")
    finally:
        del PLACES["elsewhere"]

    again = await ann.post(f"{TABLES}/t", json=CHANGE, headers=keyed())

    assert first.status_code == 200
    assert_refused(again)


async def test_the_last_state_of_an_unregistered_table_is_not_told_again(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    first = await ann.post(f"{TABLES}/t/unregister", headers=keyed())
    await restrict(root, "namespace")

    again = await ann.post(f"{TABLES}/t/unregister", headers=keyed())

    assert first.status_code == 200, first.text
    assert_refused(again)


async def test_a_registered_table_is_not_told_again(root: httpx.AsyncClient, ann: httpx.AsyncClient) -> None:
    """Nobody looked into the file: whoever is restricted anywhere in the catalog registers nothing."""
    given_up = await root.post(f"{TABLES}/t/unregister")
    wanted = {"name": "u", "metadata-location": given_up.json()["metadata-location"]}
    first = await ann.post(f"{NAMESPACES}/ns/register", json=wanted, headers=keyed())
    await root.post(TABLES, json={"name": "t", "schema": SCHEMA})
    await restrict(root)

    again = await ann.post(f"{NAMESPACES}/ns/register", json=wanted, headers=keyed())

    assert first.status_code == 200, first.text
    assert_refused(again)


async def test_who_is_not_restricted_is_told_again(root: httpx.AsyncClient, ann: httpx.AsyncClient) -> None:
    first = await root.post(f"{TABLES}/t", json=CHANGE, headers=keyed())
    await restrict(root)

    again = await root.post(f"{TABLES}/t", json=CHANGE, headers=keyed())

    assert told(again) == told(first)
    assert is_replayed(again)
