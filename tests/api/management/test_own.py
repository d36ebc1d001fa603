from typing import Any

import httpx
import pytest

from tests.api.world import World

pytestmark = pytest.mark.anyio


async def test_a_caller_learns_who_it_is(world: World, root: httpx.AsyncClient) -> None:
    who = await world.admin(root).create_principal("alice")
    async with await world.login(who) as alice:
        answers = [(await each.get("/cynosure/realm")).json() for each in (root, alice)]

    assert answers == [
        {"realm": "default", "principal": "root", "roles": ["service_admin"]},
        {"realm": "default", "principal": "alice", "roles": []},
    ]


async def test_a_principal_becomes_a_trusted_service_and_back(root: httpx.AsyncClient) -> None:
    made = (await root.post("/principals", json={"principal": {"name": "gateway"}})).json()["principal"]
    path = "/cynosure/principals/gateway/trusted-service"

    trusted = await root.put(path, json={"trusted": True})
    distrusted = await root.put(path, json={"trusted": False})

    assert made["trustedService"] is False
    assert trusted.status_code == 200
    assert trusted.json()["trustedService"] is True
    assert distrusted.json()["trustedService"] is False


async def test_the_api_says_of_keys_what_the_config_of_a_catalog_says(
    world: World, root: httpx.AsyncClient
) -> None:
    who = await world.admin(root).create_principal("alice")
    async with await world.login(who) as alice:
        answer = await alice.get("/cynosure/config")

    assert answer.status_code == 200
    assert answer.json() == {
        "properties": {"idempotency-key-supported": "true", "idempotency-key-lifetime": "PT30M"}
    }


@pytest.mark.parametrize(("body", "status"), [({}, 400), ({"trusted": "yes"}, 400), ({"trusted": True}, 404)])
async def test_a_wrong_request_to_trust_is_refused(
    refusing: Any, error_of: Any, body: Any, status: int
) -> None:
    answer = await refusing.root.put("/cynosure/principals/none/trusted-service", json=body)

    assert error_of(answer)[0] == status
