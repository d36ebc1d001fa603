import asyncio
from typing import Any

import httpx
import pytest

from cynosure.auth.entities import ROOT

pytestmark = pytest.mark.anyio


async def create(client: httpx.AsyncClient, name: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/principal-roles", json={"principalRole": {"name": name, **more}})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def names(answer: httpx.Response, field: str = "roles") -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()[field]]


async def test_a_principal_role_lives_from_create_to_delete(root: httpx.AsyncClient) -> None:
    made = await create(root, "engineers", properties={"team": "data"})
    assert made["entityVersion"] == 1
    assert made["federated"] is False
    assert made["properties"] == {"team": "data"}
    assert made["createTimestamp"] == made["lastUpdateTimestamp"] > 1_700_000_000_000
    assert (await root.get("/principal-roles/engineers")).json() == made

    body = {"currentEntityVersion": 1, "properties": {"team": "platform"}}
    changed = await root.put("/principal-roles/engineers", json=body)
    assert changed.status_code == 200
    assert changed.json()["properties"] == {"team": "platform"}
    assert changed.json()["entityVersion"] == 2

    assert (await root.delete("/principal-roles/engineers")).status_code == 204
    assert (await root.get("/principal-roles/engineers")).status_code == 404


async def test_roles_are_listed_whole_or_in_pages(root: httpx.AsyncClient) -> None:
    for name in ("b", "a"):
        await create(root, name)

    first = await root.get("/principal-roles", params={"pageSize": 2})
    second = await root.get("/principal-roles", params={"pageToken": first.json()["nextPageToken"]})

    assert names(await root.get("/principal-roles")) == ["a", "b", "service_admin"]
    assert names(first) == ["a", "b"]
    assert names(second) == ["service_admin"]


async def test_a_stale_version_is_a_conflict(root: httpx.AsyncClient, error_of: Any) -> None:
    await create(root, "engineers")

    answers = await asyncio.gather(
        *(
            root.put("/principal-roles/engineers", json={"currentEntityVersion": 1, "properties": {"by": by}})
            for by in ("one", "two")
        )
    )

    won, lost = sorted(answers, key=lambda answer: answer.status_code)
    assert won.status_code == 200
    assert error_of(lost)[0] == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "principalRole"),
        ({"principalRole": {"name": "System$x"}}, "name"),
        ({"principalRole": {"name": "x", "federated": "no"}}, "principalRole.federated"),
    ],
)
async def test_bad_input_is_refused_by_field(refusing: Any, error_of: Any, body: Any, field: str) -> None:
    answer = await refusing.root.post("/principal-roles", json=body)

    assert error_of(answer) == (400, "BadRequestException")
    assert field in answer.json()["error"]["message"]


async def test_a_taken_name_is_a_conflict(root: httpx.AsyncClient, error_of: Any) -> None:
    answer = await root.post("/principal-roles", json={"principalRole": {"name": "service_admin"}})

    assert error_of(answer) == (409, "AlreadyExistsException")


async def test_assigning_is_answered_with_201_also_the_second_time(root: httpx.AsyncClient) -> None:
    await create(root, "engineers")
    await root.post("/principals", json={"principal": {"name": "alice"}})
    path, body = "/principals/alice/principal-roles", {"principalRole": {"name": "engineers"}}

    answers = [await root.put(path, json=body) for _ in range(2)]

    assert [(each.status_code, each.content) for each in answers] == [(201, b""), (201, b"")]
    assert names(await root.get(path)) == ["engineers"]
    assert names(await root.get("/principal-roles/engineers/principals"), "principals") == ["alice"]


async def test_a_role_that_is_taken_back_is_gone_from_both_sides(root: httpx.AsyncClient) -> None:
    await create(root, "engineers")
    await root.post("/principals", json={"principal": {"name": "alice"}})
    await root.put("/principals/alice/principal-roles", json={"principalRole": {"name": "engineers"}})

    answer = await root.delete("/principals/alice/principal-roles/engineers")

    assert answer.status_code == 204
    assert names(await root.get("/principals/alice/principal-roles")) == []
    assert names(await root.get("/principal-roles/engineers/principals"), "principals") == []


async def test_assignments_are_listed_in_pages(root: httpx.AsyncClient) -> None:
    await create(root, "engineers")
    for name in ("a", "b", "c"):
        await root.post("/principals", json={"principal": {"name": name}})
        await root.put(f"/principals/{name}/principal-roles", json={"principalRole": {"name": "engineers"}})
    path = "/principal-roles/engineers/principals"

    first = await root.get(path, params={"pageSize": 2})
    second = await root.get(path, params={"pageSize": 2, "pageToken": first.json()["nextPageToken"]})

    assert sorted(names(first, "principals") + names(second, "principals")) == ["a", "b", "c"]


async def test_assigning_what_is_not_there_is_not_found(root: httpx.AsyncClient, error_of: Any) -> None:
    body = {"principalRole": {"name": "none"}}

    assert error_of(await root.put(f"/principals/{ROOT}/principal-roles", json=body))[0] == 404
    body = {"principalRole": {"name": "service_admin"}}
    assert error_of(await root.put("/principals/none/principal-roles", json=body))[0] == 404
    assert error_of(await root.put(f"/principals/{ROOT}/principal-roles", json={}))[0] == 400


async def test_a_federated_role_is_not_assigned_by_hand(root: httpx.AsyncClient, error_of: Any) -> None:
    made = await create(root, "engineers", federated=True)
    body = {"principalRole": {"name": "engineers"}}

    answer = await root.put(f"/principals/{ROOT}/principal-roles", json=body)

    assert made["federated"] is True
    assert error_of(answer)[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/principal-roles", None),
        ("POST", "/principal-roles", {"principalRole": {"name": "x"}}),
        ("GET", "/principal-roles/service_admin", None),
        ("PUT", "/principal-roles/service_admin", {"currentEntityVersion": 1, "properties": {}}),
        ("DELETE", "/principal-roles/service_admin", None),
        ("GET", "/principal-roles/service_admin/principals", None),
    ],
)
async def test_who_has_no_right_is_refused(
    refusing: Any, error_of: Any, method: str, path: str, body: Any
) -> None:
    assert error_of(await refusing.nobody.request(method, path, json=body)) == (403, "ForbiddenException")
