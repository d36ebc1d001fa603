import asyncio
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from cynosure.auth.entities import ROOT
from cynosure.testing.login import Credential
from tests.api.world import World

pytestmark = pytest.mark.anyio


async def create(client: httpx.AsyncClient, name: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/principals", json={"principal": {"name": name, **more}})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_principal_is_created_with_credentials_that_are_good(
    world: World, root: httpx.AsyncClient
) -> None:
    answer = await root.post(
        "/principals", json={"principal": {"name": "alice", "properties": {"department": "engineering"}}}
    )

    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    principal, credentials = answer.json()["principal"], answer.json()["credentials"]
    assert principal["name"] == "alice"
    assert principal["properties"] == {"department": "engineering"}
    assert principal["entityVersion"] == 1
    assert principal["createTimestamp"] == principal["lastUpdateTimestamp"] > 1_700_000_000_000
    assert principal["clientId"] == credentials["clientId"]
    assert await world.fetch_token(Credential(credentials["clientId"], credentials["clientSecret"]))


async def test_no_secret_is_ever_answered_again(root: httpx.AsyncClient) -> None:
    secret = (await create(root, "alice"))["credentials"]["clientSecret"]

    texts = [
        (await root.get("/principals/alice")).text,
        (await root.get("/principals")).text,
        (await root.post("/principals", json={"principal": {"name": "alice"}})).text,
    ]

    assert not any(secret in text for text in texts)


async def test_a_client_id_is_made_whatever_is_sent(world: World, root: httpx.AsyncClient) -> None:
    made = await create(root, "alice", clientId=world.root.client_id)

    assert made["credentials"]["clientId"] != world.root.client_id


async def test_a_client_id_can_be_set_where_nobody_has_it(
    world: World, root: httpx.AsyncClient, error_of: Any
) -> None:
    await create(root, "alice")

    answer = await root.post("/principals/alice/reset", json={"clientId": world.root.client_id})

    assert error_of(answer) == (409, "AlreadyExistsException")


async def test_a_name_that_is_taken_is_a_conflict(root: httpx.AsyncClient, error_of: Any) -> None:
    await create(root, "alice")

    assert error_of(await root.post("/principals", json={"principal": {"name": "alice"}})) == (
        409,
        "AlreadyExistsException",
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "principal"),
        ({"principal": None}, "principal"),
        ({"principal": {}}, "principal"),
        ({"principal": {"name": ""}}, "name"),
        ({"principal": {"name": "x" * 257}}, "name"),
        ({"principal": {"name": "a\nb"}}, "name"),
        ({"principal": {"name": " system$x"}}, "name"),
        ({"principal": {"name": 1}}, "principal.name"),
        ({"principal": {"name": "x", "properties": {"a": 1}}}, "principal.properties"),
        ({"principal": {"name": "x", "properties": {"polaris.a": "1"}}}, "properties"),
        ({"principal": {"name": "x"}, "credentialRotationRequired": "yes"}, "credentialRotationRequired"),
    ],
)
async def test_bad_input_is_refused_by_field(refusing: Any, error_of: Any, body: Any, field: str) -> None:
    answer = await refusing.root.post("/principals", json=body)

    assert error_of(answer) == (400, "BadRequestException")
    assert field in answer.json()["error"]["message"]


async def test_unknown_fields_and_nulls_are_tolerated(root: httpx.AsyncClient) -> None:
    given = {"name": "alice", "clientId": None, "properties": None, "entityVersion": None, "novelty": [1]}

    answer = await root.post(
        "/principals",
        json={"principal": given, "credentialRotationRequired": None, "more": {}},
    )

    assert answer.status_code == 201


async def test_any_printable_name_works_percent_encoded(root: httpx.AsyncClient) -> None:
    for name in ("Zoë 🐿", "a/b", "a%2Fb", "100%", "a b+c", "?x=1#y", ".."):
        await create(root, name)
        path = f"/principals/{quote(name, safe='')}".replace("..", "%2E%2E")

        assert (await root.get(path)).json()["name"] == name
        assert (await root.delete(path)).status_code == 204
        assert (await root.get(path)).status_code == 404


async def test_a_name_that_nothing_can_have_is_bad_input_in_a_path_too(refusing: Any, error_of: Any) -> None:
    assert error_of(await refusing.root.get("/principals/SYSTEM$x")) == (400, "BadRequestException")


async def test_principals_are_listed_by_name_whole_or_in_pages(root: httpx.AsyncClient) -> None:
    for name in ("c", "a", "b"):
        await create(root, name)

    whole = (await root.get("/principals")).json()
    first = (await root.get("/principals", params={"pageSize": 3})).json()
    second = (
        await root.get("/principals", params={"pageSize": 3, "pageToken": first["nextPageToken"]})
    ).json()

    assert [each["name"] for each in whole["principals"]] == ["a", "b", "c", "root"]
    assert "nextPageToken" not in whole
    assert [each["name"] for each in first["principals"]] == ["a", "b", "c"]
    assert [each["name"] for each in second["principals"]] == ["root"]
    assert "nextPageToken" not in second


@pytest.mark.parametrize("query", ["pageSize=0", "pageSize=x", "pageSize=-1", "pageToken=forged"])
async def test_bad_paging_is_refused(refusing: Any, error_of: Any, query: str) -> None:
    assert error_of(await refusing.root.get(f"/principals?{query}")) == (400, "BadRequestException")


async def test_a_page_token_of_another_list_is_refused(root: httpx.AsyncClient, error_of: Any) -> None:
    for name in ("a", "b"):
        await create(root, name)
    token = (await root.get("/principals", params={"pageSize": 1})).json()["nextPageToken"]

    answer = await root.get("/principal-roles", params={"pageToken": token})

    assert error_of(answer) == (400, "BadRequestException")


async def test_an_update_replaces_all_properties(root: httpx.AsyncClient) -> None:
    made = await create(root, "alice", properties={"a": "1", "b": "2"})
    body = {"currentEntityVersion": made["principal"]["entityVersion"], "properties": {"b": "3"}}

    answer = await root.put("/principals/alice", json=body)

    assert answer.status_code == 200
    assert answer.json()["properties"] == {"b": "3"}
    assert answer.json()["entityVersion"] == 2
    assert (await root.get("/principals/alice")).json() == answer.json()


async def test_of_two_updates_of_one_version_one_is_a_conflict(
    root: httpx.AsyncClient, error_of: Any
) -> None:
    await create(root, "alice")

    answers = await asyncio.gather(
        *(
            root.put("/principals/alice", json={"currentEntityVersion": 1, "properties": {"by": by}})
            for by in ("one", "two")
        )
    )

    won, lost = sorted(answers, key=lambda answer: answer.status_code)
    assert won.status_code == 200
    assert error_of(lost)[0] == 409
    assert (await root.get("/principals/alice")).json()["properties"] == won.json()["properties"]


@pytest.mark.parametrize("body", [{"properties": {}}, {"currentEntityVersion": 1}, {}])
async def test_an_update_names_its_version_and_its_properties(
    refusing: Any, error_of: Any, body: Any
) -> None:
    assert error_of(await refusing.root.put("/principals/root", json=body)) == (400, "BadRequestException")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/principals/none"),
        ("DELETE", "/principals/none"),
        ("POST", "/principals/none/rotate"),
        ("POST", "/principals/none/reset"),
        ("GET", "/principals/none/principal-roles"),
        ("DELETE", "/principals/none/principal-roles/service_admin"),
    ],
)
async def test_what_is_not_there_is_not_found(refusing: Any, error_of: Any, method: str, path: str) -> None:
    assert error_of(await refusing.root.request(method, path)) == (404, "NotFoundException")


async def test_rotating_keeps_the_secret_before_and_resetting_does_not(
    world: World, root: httpx.AsyncClient
) -> None:
    first = (await create(root, "alice"))["credentials"]
    async with await world.login(Credential(first["clientId"], first["clientSecret"])) as alice:
        rotated = await alice.post("/principals/alice/rotate")
        assert rotated.status_code == 200
        second = rotated.json()["credentials"]
        still_good = await alice.get("/cynosure/realm")

        reset = await root.post("/principals/alice/reset")
        after = await alice.get("/cynosure/realm")

    third = reset.json()["credentials"]
    assert reset.status_code == 200
    assert len({each["clientSecret"] for each in (first, second, third)}) == 3
    assert still_good.status_code == 200
    assert after.status_code == 401
    assert await world.fetch_token(Credential(third["clientId"], third["clientSecret"]))


async def test_credentials_can_be_given_in_a_reset(world: World, root: httpx.AsyncClient) -> None:
    await create(root, "alice")
    wanted = {"clientId": "a-new-id", "clientSecret": "a-secret-of-hers"}

    answer = await root.post("/principals/alice/reset", json=wanted)

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json()["credentials"] == wanted
    assert await world.fetch_token(Credential("a-new-id", "a-secret-of-hers"))


async def test_a_body_of_reset_must_be_json_if_there_is_one(root: httpx.AsyncClient, error_of: Any) -> None:
    await create(root, "alice")

    for content, status in ((b"{", 400), (b"[]", 400), (b"null", 400)):
        answer = await root.post(
            "/principals/alice/reset", content=content, headers={"content-type": "application/json"}
        )
        assert error_of(answer)[0] == status
    answer = await root.post(
        "/principals/alice/reset", content=b"a=b", headers={"content-type": "text/plain"}
    )
    assert error_of(answer) == (415, "UnsupportedMediaTypeException")


async def test_a_refused_secret_is_not_repeated_in_the_answer(root: httpx.AsyncClient, error_of: Any) -> None:
    await create(root, "alice")

    answer = await root.post("/principals/alice/reset", json={"clientSecret": "hunter2\x00"})

    assert error_of(answer) == (400, "BadRequestException")
    assert "hunter2" not in answer.text


async def test_who_must_rotate_can_do_nothing_else(world: World, root: httpx.AsyncClient) -> None:
    answer = await root.post(
        "/principals", json={"principal": {"name": "alice"}, "credentialRotationRequired": True}
    )
    made = answer.json()
    assert made["principal"]["credentialRotationRequired"] is True
    who = Credential(made["credentials"]["clientId"], made["credentials"]["clientSecret"])
    async with await world.login(who) as alice:
        before = await alice.get("/principals/alice")
        rotated = await alice.post("/principals/alice/rotate")

    assert before.status_code == 403
    assert rotated.status_code == 200
    assert rotated.json()["principal"]["credentialRotationRequired"] is False


async def test_deleting_a_principal_ends_its_tokens(
    root: httpx.AsyncClient, nobody: httpx.AsyncClient
) -> None:
    assert (await nobody.get("/cynosure/realm")).status_code == 200

    assert (await root.delete("/principals/nobody")).status_code == 204

    assert (await nobody.get("/cynosure/realm")).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/principals", None),
        ("POST", "/principals", {"principal": {"name": "x"}}),
        ("GET", "/principals/root", None),
        ("PUT", "/principals/root", {"currentEntityVersion": 1, "properties": {}}),
        ("DELETE", "/principals/root", None),
        ("POST", f"/principals/{ROOT}/rotate", None),
        ("POST", f"/principals/{ROOT}/reset", None),
        ("GET", f"/principals/{ROOT}/principal-roles", None),
        ("PUT", "/principals/nobody/principal-roles", {"principalRole": {"name": "service_admin"}}),
        ("DELETE", f"/principals/{ROOT}/principal-roles/service_admin", None),
        ("PUT", "/cynosure/principals/nobody/trusted-service", {"trusted": True}),
    ],
)
async def test_who_has_no_right_is_refused_and_strangers_are_not_let_in(
    refusing: Any, error_of: Any, method: str, path: str, body: Any
) -> None:
    before = (await refusing.root.get("/principals")).json()

    refused = await refusing.nobody.request(method, path, json=body)
    async with refusing.world.client() as stranger:
        turned_away = await stranger.request(method, path, json=body)

    assert error_of(refused) == (403, "ForbiddenException")
    assert error_of(turned_away) == (401, "NotAuthorizedException")
    assert (await refusing.root.get("/principals")).json() == before
