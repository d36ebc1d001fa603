"""What was allowed and is not any more. Promises I55, I60."""

import secrets
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from tests.robustness.attacks.storage.lakes import VENDED, Lake, make_table, vend
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio


async def allow(owner: httpx.AsyncClient, lake: Lake, change: dict[str, Any]) -> httpx.Response:
    """Change the storage of a catalog."""
    path = f"/api/management/v1/catalogs/{lake.name}"
    known = (await owner.get(path)).json()
    storage = {**known["storageConfigInfo"], **change}
    body = {"currentEntityVersion": known["entityVersion"], "storageConfigInfo": storage}
    return await owner.put(path, json=body)


async def test_a_location_that_is_not_allowed_any_more_gets_no_credentials(
    owner: httpx.AsyncClient, lake: Lake
) -> None:
    """Apache Polaris before 1.5 went on vending for locations that had been taken from a catalog."""
    extra = f"s3://{lake.store.bucket}/extra{secrets.token_hex(4)}"
    name = f"t{secrets.token_hex(4)}"
    assert (await allow(owner, lake, {"allowedLocations": [lake.base, extra]})).status_code == 200
    assert (await make_table(owner, lake, name, location=f"{extra}/t")).status_code == 200
    await vend(owner, lake, name)

    tightened = await allow(owner, lake, {"allowedLocations": [lake.base]})

    assert tightened.status_code == 200, tightened.text
    for path in (lake.path(name), f"{lake.path(name)}/credentials"):
        answer = await owner.get(path, headers=VENDED)
        assert answer.status_code == 403, answer.text
        assert "s3.access-key-id" not in answer.text
    assert (await owner.get(lake.path(name))).status_code == 200


async def test_whoever_lost_the_right_gets_no_newer_credentials(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name = f"t{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, name)).status_code == 200
    grant = Grant("TABLE_READ_DATA", ("ns",), name)
    thief = await make_thief(lake, grant)
    await vend(thief.http, lake, name)

    await Admin(owner).revoke(lake.name, thief.catalog_role, grant)

    for path in (lake.path(name), f"{lake.path(name)}/credentials"):
        answer = await thief.http.get(path, headers=VENDED)
        assert answer.status_code == 403, answer.text


async def test_whoever_may_only_read_now_gets_credentials_that_only_read(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name = f"t{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, name)).status_code == 200
    write = Grant("TABLE_WRITE_DATA", ("ns",), name)
    thief = await make_thief(lake, write, Grant("TABLE_READ_DATA", ("ns",), name))
    before = await vend(thief.http, lake, name)

    await Admin(owner).revoke(lake.name, thief.catalog_role, write)
    after = await vend(thief.http, lake, name)

    assert after["s3.access-key-id"] != before["s3.access-key-id"]


async def test_credentials_of_one_principal_are_never_those_of_another(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name = f"t{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, name)).status_code == 200
    users = [await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), name)) for _ in range(2)]

    found = [(await vend(user.http, lake, name))["s3.access-key-id"] for user in users]
    again = [(await vend(user.http, lake, name))["s3.access-key-id"] for user in users]

    assert found == again
    assert len(set(found)) == 2
