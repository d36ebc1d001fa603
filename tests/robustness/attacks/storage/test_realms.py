"""Two realms with everything alike: names, places, principals. What one is given is nothing in the other."""

import json
import secrets
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.login import Login
from tests.robustness.attacks.storage.lakes import VENDED, Lake, make_table, vend
from tests.robustness.attacks.storage.test_restricted import policies_of, row_filter
from tests.robustness.attacks.test_other_realms import create_realm
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio


class Twin(NamedTuple):
    """The other realm, by its root."""

    realm: str
    login: Login
    http: httpx.AsyncClient


@pytest.fixture
async def twin(lake: Lake) -> AsyncIterator[Twin]:
    """A realm with a catalog of the same name in the very same place: whose keys are given may have that."""
    realm = f"realm{secrets.token_hex(4)}"
    login = await create_realm(lake.server, realm)
    async with lake.server.client(login) as http:
        admin = Admin(http)
        await admin.create_catalog(lake.name, lake.base, storage=lake.store.storage())
        await admin.grant_content(lake.name)
        assert (await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})).status_code == 200
        yield Twin(realm, login, http)


async def test_the_same_in_another_realm_is_given_to_nobody_of_this_one(
    owner: httpx.AsyncClient, lake: Lake, twin: Twin, make_thief: MakeUser
) -> None:
    name = f"t{secrets.token_hex(4)}"
    for http in (owner, twin.http):
        assert (await make_table(http, lake, name, location=f"{lake.base}/{name}")).status_code == 200
    reader = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), name))
    theirs = await Admin(twin.http).create_user(reader.name, lake.name)
    stranger = lake.server.login_as(theirs, realm=twin.realm)

    ours = [(await vend(http, lake, name))["s3.access-key-id"] for http in (owner, reader.http, twin.http)]
    async with lake.server.client(stranger) as http:
        same_name = await http.get(lake.path(name), headers=VENDED)
    async with lake.server.stranger() as http:
        token = {"Authorization": f"Bearer {reader.login.token()}", **VENDED}
        crossed = await http.get(lake.path(name), headers={**token, "Polaris-Realm": twin.realm})

    assert len(set(ours)) == 3, "each has its own, also the two roots of one name"
    assert (same_name.status_code, crossed.status_code) == (403, 401)
    assert "s3.access-key-id" not in same_name.text + crossed.text


async def test_a_restriction_is_of_its_own_realm_and_so_is_a_role(
    owner: httpx.AsyncClient, lake: Lake, twin: Twin, make_thief: MakeUser
) -> None:
    """A role of the same name in another realm neither restricts nor exempts anybody here."""
    name, policy = f"t{secrets.token_hex(4)}", f"p{secrets.token_hex(4)}"
    mallory = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",)))
    theirs = await Admin(twin.http).create_user(mallory.name, lake.name, Grant("TABLE_READ_DATA", ("ns",)))
    content = row_filter(roles=[mallory.role])
    for http in (owner, twin.http):
        assert (await make_table(http, lake, name, location=f"{lake.base}/{name}")).status_code == 200
    body = {"name": policy, "type": "cynosure.row-filter", "content": content}
    assert (await owner.post(policies_of(lake), json=body)).status_code == 200
    target = {"target": {"type": "table-like", "path": ["ns", name]}}
    assert (await owner.put(f"{policies_of(lake)}/{policy}/mappings", json=target)).status_code == 204

    here = await mallory.http.get(lake.path(name), headers=VENDED)
    async with lake.server.client(lake.server.login_as(theirs, realm=twin.realm)) as http:
        there = await http.get(lake.path(name), headers=VENDED)

    assert here.json()["read-restrictions"]["required-row-filter"]
    assert "s3.access-key-id" not in here.text
    assert "read-restrictions" not in there.json()
    assert json.loads(there.text)["storage-credentials"]
