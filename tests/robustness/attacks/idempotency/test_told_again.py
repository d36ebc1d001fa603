"""Requests are told their own outcome again, whatever became of their names since: I74 and I76."""

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.api.world import World
from tests.robustness.attacks.idempotency.lake import (
    NAMESPACES,
    SCHEMA,
    TABLES,
    is_replayed,
    keyed,
    told,
)

pytestmark = pytest.mark.anyio

VIEW = {
    "schema": {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
    },
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["ns"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    },
    "properties": {},
}


async def test_a_registration_is_told_again_when_a_view_has_its_name(root: httpx.AsyncClient) -> None:
    given_up = await root.post(f"{TABLES}/t/unregister")
    wanted = {"name": "u", "metadata-location": given_up.json()["metadata-location"], "overwrite": True}
    first = await root.post(f"{NAMESPACES}/ns/register", json=wanted, headers=keyed())
    assert (await root.delete(f"{TABLES}/u")).status_code == 204
    made = await root.post(f"{NAMESPACES}/ns/views", json={"name": "u", **VIEW})
    assert made.status_code == 200, made.text

    again = await root.post(f"{NAMESPACES}/ns/register", json=wanted, headers=keyed())

    assert first.status_code == 200, first.text
    assert told(again) == told(first)
    assert is_replayed(again)


async def test_who_may_drop_only_this_table_is_told_again_that_it_is_dropped(
    world: World, root: httpx.AsyncClient
) -> None:
    credential = await world.admin(root).create_user("ann", "lake", Grant("TABLE_DROP", ("ns",), "t"))
    async with await world.login(credential) as ann:
        first = await ann.delete(f"{TABLES}/t", headers=keyed())
        again = await ann.delete(f"{TABLES}/t", headers=keyed())
        await root.post(TABLES, json={"name": "t", "schema": SCHEMA})
        third = await ann.delete(f"{TABLES}/t", headers=keyed())

    assert first.status_code == 204, first.text
    assert told(again) == told(first), again.text
    assert told(third) == told(first), third.text
