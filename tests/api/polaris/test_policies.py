"""Policies over HTTP: statuses, shapes and types of errors as Apache Polaris has them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.world import BASE, World, open_world

pytestmark = pytest.mark.anyio

INSIDE = f"{BASE}/api/catalog/polaris/v1/lake"
POLICIES = f"{INSIDE}/namespaces/a/policies"
APPLICABLE = f"{INSIDE}/applicable-policies"
TABLE = {"type": "table-like", "path": ["a", "t"]}
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
COMPACTION: dict[str, Any] = {
    "name": "compaction",
    "type": "system.data-compaction",
    "description": "Keep files large.",
    "content": '{"enable":true}',
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(world.root) as client:
        namespaces = f"{BASE}/api/catalog/v1/lake/namespaces"
        for path, body in (
            ("/catalogs", world.catalog("lake")),
            (namespaces, {"namespace": ["a"]}),
            (namespaces, {"namespace": ["a", "b"]}),
            (f"{namespaces}/a/tables", {"name": "t", "schema": SCHEMA}),
        ):
            answer = await client.post(path, json=body)
            assert answer.is_success, answer.text
        yield client


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


async def create(client: httpx.AsyncClient, **more: Any) -> None:
    answer = await client.post(POLICIES, json={**COMPACTION, **more})
    assert answer.status_code == 200, answer.text


async def test_a_policy_is_created_loaded_changed_listed_and_dropped(client: httpx.AsyncClient) -> None:
    made = await client.post(POLICIES, json=COMPACTION)
    loaded = await client.get(f"{POLICIES}/compaction")
    changed = await client.put(
        f"{POLICIES}/compaction", json={"content": '{"enable":false}', "current-policy-version": 0}
    )
    listed = await client.get(POLICIES)
    dropped = await client.delete(f"{POLICIES}/compaction")

    policy = {
        "policy-type": "system.data-compaction",
        "inheritable": True,
        "name": "compaction",
        "description": "Keep files large.",
        "content": '{"enable":true}',
        "version": 0,
    }
    assert (made.status_code, made.json()) == (200, {"policy": policy})
    assert (loaded.status_code, loaded.json()) == (200, {"policy": policy})
    assert changed.json() == {"policy": {**policy, "content": '{"enable":false}', "version": 1}}
    assert listed.json() == {"identifiers": [{"namespace": ["a"], "name": "compaction"}]}
    assert dropped.status_code == 204
    assert error_of(await client.get(f"{POLICIES}/compaction")) == (404, "NoSuchPolicyException")


async def test_what_is_refused_has_the_status_and_type_of_polaris(client: httpx.AsyncClient) -> None:
    await create(client)
    await create(client, name="other")
    mappings = f"{POLICIES}/compaction/mappings"
    assert (await client.put(mappings, json={"target": TABLE})).status_code == 204

    async def refuse(method: str, path: str, body: Any = None) -> tuple[int, str]:
        return error_of(await client.request(method, path, json=body))

    assert await refuse("POST", POLICIES, COMPACTION) == (409, "AlreadyExistsException")
    assert await refuse("POST", POLICIES, {**COMPACTION, "name": "no way"}) == (400, "BadRequestException")
    assert await refuse("POST", POLICIES, {**COMPACTION, "name": "x", "content": "{}"}) == (
        400,
        "InvalidPolicyException",
    )
    missing = f"{INSIDE}/namespaces/no/policies"
    assert await refuse("POST", missing, COMPACTION) == (404, "NoSuchNamespaceException")
    assert await refuse("GET", missing) == (404, "NoSuchNamespaceException")
    update = {"content": '{"enable":false}', "current-policy-version": 3}
    assert await refuse("PUT", f"{POLICIES}/compaction", update) == (409, "PolicyVersionMismatchException")
    assert await refuse("DELETE", f"{POLICIES}/compaction") == (400, "PolicyInUseException")
    assert await refuse("PUT", f"{POLICIES}/other/mappings", {"target": TABLE}) == (
        409,
        "ConflictPolicyAttachmentException",
    )
    assert await refuse("POST", f"{POLICIES}/other/mappings", {"target": TABLE}) == (
        404,
        "NoSuchMappingException",
    )
    nothing = {"target": {"type": "table-like", "path": ["a", "no"]}}
    assert await refuse("PUT", mappings, nothing) == (404, "NoSuchTargetException")
    assert await refuse("PUT", f"{POLICIES}/no/mappings", {"target": TABLE}) == (404, "NoSuchPolicyException")
    assert (await client.get(APPLICABLE, params={"target-name": "t"})).status_code == 400
    for place, type_ in (
        ({"namespace": "no"}, "NoSuchNamespaceException"),
        ({"namespace": "a", "target-name": "no"}, "NoSuchTableException"),
    ):
        assert error_of(await client.get(APPLICABLE, params=place)) == (404, type_)
    assert (await client.delete(f"{POLICIES}/compaction", params={"detach-all": "true"})).status_code == 204


async def test_policies_count_for_what_is_below_their_target(client: httpx.AsyncClient) -> None:
    await create(client)
    await create(client, name="expiry", type="system.snapshot-expiry")
    for name, target in (
        ("compaction", {"type": "catalog"}),
        ("expiry", {"type": "namespace", "path": ["a"]}),
    ):
        answer = await client.put(
            f"{POLICIES}/{name}/mappings", json={"target": target, "parameters": {"k": "v"}}
        )
        assert answer.status_code == 204, answer.text

    async def ask(**place: str) -> list[tuple[str, bool, list[str]]]:
        answer = await client.get(APPLICABLE, params=place)
        assert answer.status_code == 200, answer.text
        found = answer.json()["applicable-policies"]
        return [(each["name"], each["inherited"], each["namespace"]) for each in found]

    assert await ask() == [("compaction", False, ["a"])]
    assert await ask(namespace="a\x1fb") == [("compaction", True, ["a"]), ("expiry", True, ["a"])]
    at_table = {"namespace": "a", "target-name": "t"}
    assert await ask(**at_table, policyType="system.snapshot-expiry") == [("expiry", True, ["a"])]
    assert await ask(**at_table, policyType="") == [("compaction", True, ["a"]), ("expiry", True, ["a"])]
    detached = await client.post(
        f"{POLICIES}/expiry/mappings", json={"target": {"type": "namespace", "path": ["a"]}}
    )
    assert detached.status_code == 204
    assert await ask(**at_table) == [("compaction", True, ["a"])]


async def test_a_target_of_another_kind_is_answered_with_the_kinds_there_are(
    client: httpx.AsyncClient,
) -> None:
    await create(client)

    answer = await client.put(
        f"{POLICIES}/compaction/mappings", json={"target": {"type": "view", "path": ["a", "v"]}}
    )

    assert answer.status_code == 400
    assert "Choose one of catalog, namespace, table-like." in answer.json()["error"]["message"]


async def test_a_stranger_may_do_nothing(world: World, client: httpx.AsyncClient) -> None:
    await create(client)
    nobody = await world.login(await world.admin(client).create_principal("nobody"))

    for method, path, body in (
        ("POST", POLICIES, {**COMPACTION, "name": "x"}),
        ("GET", POLICIES, None),
        ("GET", f"{POLICIES}/compaction", None),
        ("PUT", f"{POLICIES}/compaction", {"content": '{"enable":false}'}),
        ("DELETE", f"{POLICIES}/compaction", None),
        ("PUT", f"{POLICIES}/compaction/mappings", {"target": TABLE}),
        ("POST", f"{POLICIES}/compaction/mappings", {"target": TABLE}),
        ("GET", APPLICABLE, None),
    ):
        assert (await nobody.request(method, path, json=body)).status_code == 403, (method, path)
    await nobody.aclose()


async def test_grants_on_policies_are_given_listed_and_taken(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    who = await world.admin(client).create_principal("ann")
    role = "/catalogs/lake/catalog-roles/reader"
    grant = {"type": "policy", "namespace": ["a"], "policyName": "compaction", "privilege": "POLICY_READ"}
    for method, path, body in (
        ("POST", "/principal-roles", {"principalRole": {"name": "readers"}}),
        ("PUT", "/principals/ann/principal-roles", {"principalRole": {"name": "readers"}}),
        ("POST", "/catalogs/lake/catalog-roles", {"catalogRole": {"name": "reader"}}),
        ("PUT", "/principal-roles/readers/catalog-roles/lake", {"catalogRole": {"name": "reader"}}),
        ("PUT", f"{role}/grants", {"grant": grant}),
    ):
        answer = await client.request(method, path, json=body)
        assert answer.status_code == 201, answer.text
    ann = await world.login(who)

    assert (await ann.get(f"{POLICIES}/compaction")).status_code == 200
    assert (await ann.delete(f"{POLICIES}/compaction")).status_code == 403
    assert (await client.get(f"{role}/grants")).json()["grants"] == [grant]
    assert (await client.post(f"{role}/grants", json={"grant": grant})).status_code == 201
    assert (await ann.get(f"{POLICIES}/compaction")).status_code == 403
    missing = {**grant, "policyName": "no"}
    assert error_of(await client.put(f"{role}/grants", json={"grant": missing})) == (
        404,
        "NoSuchPolicyException",
    )
    await ann.aclose()


async def test_what_is_done_to_policies_is_audited(client: httpx.AsyncClient, world: World) -> None:
    """I43."""
    await create(client)
    await client.put(f"{POLICIES}/compaction/mappings", json={"target": TABLE})
    await client.put(f"{POLICIES}/compaction", json={"content": '{"enable":false}'})
    await client.delete(f"{POLICIES}/compaction", params={"detach-all": "true"})
    nobody = await world.login(await world.admin(client).create_principal("nobody"))
    await nobody.delete(f"{POLICIES}/compaction")
    await nobody.post(POLICIES, json=COMPACTION)
    await nobody.aclose()

    events = (await client.get("/cynosure/events", params={"limit": 1_000})).json()["events"]

    told = [
        (event["operation"], target["change"], target["name"], target.get("details"))
        for event in events
        for target in event.get("targets", ())
        if target.get("kind") == "policy" and event["decision"] == "allowed"
    ]
    of_type = {"policy_type": "system.data-compaction"}
    onto = {**of_type, "on_kind": "table", "on": "a.t"}
    assert told == [
        ("create-policy", "policy-created", "a.compaction", of_type),
        ("attach-policy-to-table", "policy-attached", "a.compaction", onto),
        ("update-policy", "policy-updated", "a.compaction", {**of_type, "version": "1"}),
        ("drop-policy", "policy-detached", "a.compaction", onto),
        ("drop-policy", "policy-dropped", "a.compaction", of_type),
    ]
    denied = [(each["operation"], each["missing"]) for each in events if each["decision"] == "denied"]
    assert denied == [("create-policy", ["POLICY_CREATE"])]


async def test_access_to_policies_is_explained(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    await world.admin(client).create_principal("ann")
    question = {
        "principal": "ann",
        "operation": "attach-policy-to-table",
        "target": {"catalog": "lake", "namespace": ["a"], "policy": "compaction"},
        "secondary": {"catalog": "lake", "namespace": ["a"], "table": "t"},
    }

    answer = await client.post("/cynosure/explain-access", json=question)
    unknown = {**question, "target": {**question["target"], "policy": "no"}}  # type: ignore[dict-item]

    assert answer.status_code == 200, answer.text
    assert answer.json()["allowed"] is False
    assert answer.json()["needs"] == [
        {"targetKind": "policy", "target": "a.compaction", "privileges": ["POLICY_ATTACH"]},
        {"targetKind": "table", "target": "a.t", "privileges": ["TABLE_ATTACH_POLICY"]},
    ]
    assert error_of(await client.post("/cynosure/explain-access", json=unknown)) == (
        404,
        "NoSuchPolicyException",
    )


async def test_generic_tables_inherit_policies_and_have_none_of_their_own(client: httpx.AsyncClient) -> None:
    generic = f"{INSIDE}/namespaces/a/generic-tables"
    made = await client.post(generic, json={"name": "files", "format": "csv"})
    assert made.status_code == 200, made.text
    await create(client)
    mappings = f"{POLICIES}/compaction/mappings"

    refused = await client.put(mappings, json={"target": {"type": "table-like", "path": ["a", "files"]}})
    above = await client.put(mappings, json={"target": {"type": "namespace", "path": ["a"]}})
    found = await client.get(APPLICABLE, params={"namespace": "a", "target-name": "files"})

    assert error_of(refused) == (400, "PolicyAttachException")
    assert above.status_code == 204
    assert [each["name"] for each in found.json()["applicable-policies"]] == ["compaction"]


async def test_the_configuration_names_the_endpoints_of_policies(client: httpx.AsyncClient) -> None:
    config = await client.get(f"{BASE}/api/catalog/v1/config", params={"warehouse": "lake"})

    served = set(config.json()["endpoints"])
    many = "/polaris/v1/{prefix}/namespaces/{namespace}/policies"
    assert {
        f"POST {many}",
        f"GET {many}",
        f"GET {many}/{{policy-name}}",
        f"PUT {many}/{{policy-name}}",
        f"DELETE {many}/{{policy-name}}",
        f"PUT {many}/{{policy-name}}/mappings",
        f"POST {many}/{{policy-name}}/mappings",
        "GET /polaris/v1/{prefix}/applicable-policies",
    } <= served
