"""Nobody is told what another one was told, or itself with rights that it does not use now: I76."""

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.api.world import World
from tests.robustness.attacks.idempotency.lake import (
    CHANGE,
    NAMESPACES,
    SCHEMA,
    TABLES,
    is_replayed,
    keyed,
    told,
)

pytestmark = pytest.mark.anyio

CONTENT = Grant("CATALOG_MANAGE_CONTENT")
PRINCIPAL = {"principal": {"name": "etl"}}


async def test_a_token_for_fewer_roles_is_not_told_what_needs_more(
    world: World, root: httpx.AsyncClient
) -> None:
    """Neither what was done, nor a secret, nor what was refused."""
    admin = world.admin(root)
    credential = await admin.create_user("ann", "lake", CONTENT)
    await admin.create_role("idle")
    for role in ("idle", "service_admin"):
        await admin.assign_role("ann", role)
    asked = [
        (f"{TABLES}/t", CHANGE, "done"),
        ("principals", PRINCIPAL, "secret"),
        (TABLES, {"name": "t", "schema": SCHEMA}, "refused"),
    ]
    async with (
        await world.login(credential) as ann,
        world.client(await world.fetch_token(credential, "PRINCIPAL_ROLE:idle")) as idle,
    ):
        first = [await ann.post(url, json=body, headers=keyed(key)) for url, body, key in asked]
        others = [await idle.post(url, json=body, headers=keyed(key)) for url, body, key in asked]
        again = [await ann.post(url, json=body, headers=keyed(key)) for url, body, key in asked]

    assert [each.status_code for each in first] == [200, 201, 409]
    assert [each.status_code for each in others] == [403, 403, 403]
    assert [told(each) for each in again] == [told(each) for each in first]


async def test_who_is_only_called_the_same_is_another_one(world: World, root: httpx.AsyncClient) -> None:
    admin = world.admin(root)
    wanted = {"namespace": ["x"]}
    async with await world.login(await admin.create_user("ann", "lake", CONTENT)) as ann:
        first = await ann.post(NAMESPACES, json=wanted, headers=keyed())
    await admin.delete_principal("ann")
    credential = await admin.create_principal("ann")
    await admin.assign_role("ann", "ann_role")

    async with await world.login(credential) as other:
        again = await other.post(NAMESPACES, json=wanted, headers=keyed())

    assert first.status_code == 200
    assert (again.status_code, is_replayed(again)) == (409, False)


async def test_a_table_that_is_only_called_the_same_is_another_one(
    world: World, root: httpx.AsyncClient
) -> None:
    """What was told of the first is told again, and the second is not touched."""
    first = await root.post(f"{TABLES}/t", json=CHANGE, headers=keyed())
    await root.delete(f"{TABLES}/t")
    await root.post(TABLES, json={"name": "t", "schema": SCHEMA})

    again = await root.post(f"{TABLES}/t", json=CHANGE, headers=keyed())

    assert told(again) == told(first)
    assert (await root.get(f"{TABLES}/t")).json()["metadata"]["properties"].get("a") is None


async def test_a_drop_does_not_drop_what_has_the_name_since(root: httpx.AsyncClient) -> None:
    first = await root.delete(f"{TABLES}/t", headers=keyed())
    await root.post(TABLES, json={"name": "t", "schema": SCHEMA})

    again = await root.delete(f"{TABLES}/t", headers=keyed())

    assert (first.status_code, again.status_code) == (204, 204)
    assert (await root.get(f"{TABLES}/t")).status_code == 200


async def test_a_catalog_that_is_only_called_the_same_knows_no_keys_of_the_other(
    world: World, root: httpx.AsyncClient
) -> None:
    pond = "http://test/api/catalog/v1/pond/namespaces"
    wanted = {"namespace": ["x"]}
    assert (await root.post("catalogs", json=world.catalog("pond"))).status_code == 201
    await world.admin(root).grant_content("pond")
    first = await root.post(pond, json=wanted, headers=keyed())
    await root.delete(f"{pond}/x")
    assert (await root.delete("catalogs/pond")).status_code == 204
    assert (await root.post("catalogs", json=world.catalog("pond"))).status_code == 201

    unseen = await root.post(pond, json=wanted, headers=keyed())
    await world.admin(root).grant_content("pond")
    anew = await root.post(pond, json=wanted, headers=keyed())
    again = await root.post(pond, json=wanted, headers=keyed())

    assert first.status_code == 200
    assert unseen.status_code in (200, 403)
    assert anew.status_code == 200
    assert is_replayed(again)
    assert (await root.get(f"{pond}/x")).status_code == 200
