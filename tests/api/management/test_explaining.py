from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.api.world import BASE, World

pytestmark = pytest.mark.anyio

EXPLAIN = "/cynosure/explain-access"
TABLE = {"catalog": "lake", "namespace": ["a"], "table": "t"}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}


@pytest.fixture
async def table(root: httpx.AsyncClient, lake: str) -> None:
    inside = f"{BASE}/api/catalog/v1/lake/namespaces"
    await root.post(inside, json={"namespace": ["a"]})
    assert (await root.post(f"{inside}/a/tables", json={"name": "t", "schema": SCHEMA})).status_code == 200


async def ask(client: httpx.AsyncClient, **question: Any) -> dict[str, Any]:
    answer = await client.post(EXPLAIN, json=question)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_permission_is_explained_by_the_grant_it_rests_on(
    world: World, root: httpx.AsyncClient, table: None
) -> None:
    who = await world.admin(root).create_user("ann", "lake", Grant("TABLE_READ_DATA", ("a",)))

    found = await ask(root, principal="ann", operation="load-table", target=TABLE)

    assert found["allowed"] is True
    assert found["principal"] == "ann"
    assert found["roles"] == ["ann_role"]
    assert found["needs"] == [
        {"targetKind": "table", "target": "a.t", "privileges": ["TABLE_READ_PROPERTIES"]}
    ]
    assert found["path"] == [
        {
            "needed": "TABLE_READ_PROPERTIES",
            "held": "TABLE_READ_DATA",
            "principalRole": "ann_role",
            "catalogRole": "ann_catalog_role",
            "onKind": "namespace",
            "on": "a",
            "target": "a.t",
        }
    ]
    assert (found["missing"], found["remedies"]) == ([], [])
    async with await world.login(who) as ann:
        assert await ask(ann, operation="load-table", target=TABLE) == found


async def test_a_refusal_is_explained_by_what_is_missing_and_what_would_help(
    world: World, root: httpx.AsyncClient, table: None
) -> None:
    who = await world.admin(root).create_user("ann", "lake", Grant("TABLE_READ_DATA", ("a",)))

    found = await ask(root, principal="ann", operation="drop-table", target=TABLE)

    assert found["allowed"] is False
    assert found["missing"] == [{"privilege": "TABLE_DROP", "targetKind": "table", "target": "a.t"}]
    assert ("table", "a.t") in {(each["onKind"], each["on"]) for each in found["remedies"]}
    assert all("TABLE_DROP" in each["privileges"] for each in found["remedies"])
    async with await world.login(who) as ann:
        dropped = await ann.delete(f"{BASE}/api/catalog/v1/lake/namespaces/a/tables/t")
    assert dropped.status_code == 403


async def test_updates_and_second_targets_are_part_of_the_question(
    root: httpx.AsyncClient, table: None
) -> None:
    commit = await ask(root, operation="commit-table", target=TABLE, updates=["add-schema", "add-snapshot"])
    rename = await ask(
        root, operation="rename-table", target=TABLE, secondary={"catalog": "lake", "namespace": ["a"]}
    )
    revoke = await ask(root, operation="revoke-on-table", target={**TABLE, "catalogRole": "catalog_admin"})

    assert commit["needs"][0]["privileges"] == ["TABLE_ADD_SCHEMA", "TABLE_ADD_SNAPSHOT"]
    assert [each["targetKind"] for each in rename["needs"]] == ["table", "namespace"]
    assert [each["target"] for each in revoke["needs"]] == ["a.t", "catalog_admin"]


@pytest.mark.parametrize(
    ("operation", "target"),
    [
        ("list-catalogs", None),
        ("load-principal", {"principal": "root"}),
        ("load-principal-role", {"principalRole": "service_admin"}),
        ("load-catalog", {"catalog": "lake"}),
        ("load-catalog-role", {"catalog": "lake", "catalogRole": "catalog_admin"}),
        ("list-namespaces", {"catalog": "lake"}),
    ],
)
async def test_every_kind_of_target_can_be_asked_about(refusing: Any, operation: str, target: Any) -> None:
    asked = {"operation": operation, "target": target}

    assert (await ask(refusing.root, **asked))["allowed"] is True
    assert (await ask(refusing.nobody, **asked))["allowed"] is False
    assert (await ask(refusing.root, **asked, principal="nobody"))["allowed"] is False


@pytest.mark.parametrize(
    ("question", "status", "named"),
    [
        ({}, 400, "operation"),
        ({"operation": "fly"}, 400, "operation"),
        ({"operation": "load-table"}, 400, "target.catalog"),
        ({"operation": "load-table", "target": {"catalog": "lake"}}, 400, "target.namespace"),
        ({"operation": "load-table", "target": {"catalog": "lake", "namespace": ["x"]}}, 400, "target.table"),
        ({"operation": "load-table", "target": {**TABLE, "catalog": "none"}}, 404, "none"),
        ({"operation": "load-table", "target": TABLE}, 404, "a.t"),
        ({"operation": "list-catalogs", "principal": "none"}, 404, "none"),
        ({"operation": "load-policy", "target": {"catalog": "lake"}}, 400, "target.namespace"),
        (
            {"operation": "load-policy", "target": {"catalog": "lake", "namespace": ["a"]}},
            400,
            "target.policy",
        ),
        ({"operation": "list-catalogs", "updates": ["add-schema"]}, 400, "updates"),
        (
            {"operation": "rename-table", "target": TABLE, "secondary": {"catalog": "other"}},
            400,
            "target.catalog",
        ),
    ],
)
async def test_a_question_that_has_no_answer_says_why(
    refusing: Any, error_of: Any, question: Any, status: int, named: str
) -> None:
    answer = await refusing.root.post(EXPLAIN, json=question)

    assert error_of(answer)[0] == status
    assert named in answer.json()["error"]["message"]


async def test_others_are_explained_only_to_those_who_manage_them(refusing: Any, error_of: Any) -> None:
    about_root = {"operation": "list-catalogs", "principal": "root"}
    about_none = {"operation": "list-catalogs", "principal": "none"}
    about_oneself = {"operation": "list-catalogs", "principal": "nobody"}

    assert error_of(await refusing.nobody.post(EXPLAIN, json=about_root)) == (403, "ForbiddenException")
    assert error_of(await refusing.nobody.post(EXPLAIN, json=about_none)) == (404, "NotFoundException")
    assert (await ask(refusing.nobody, **about_oneself))["allowed"] is False


async def test_what_is_hidden_is_hidden_from_questions_too(tmp_path: Any, error_of: Any) -> None:
    from cynosure.auth.settings import AuthSettings
    from tests.api.world import open_world

    async with (
        open_world(tmp_path, AuthSettings(hide_existence=True)) as world,
        await world.login(world.root) as root,
    ):
        admin = world.admin(root)
        await admin.send("POST", "/catalogs", world.catalog("lake"))
        inside = f"{BASE}/api/catalog/v1/lake/namespaces"
        await root.post(inside, json={"namespace": ["a"]})
        await root.post(f"{inside}/a/tables", json={"name": "t", "schema": SCHEMA})
        who = await admin.create_user("ann", "lake", Grant("NAMESPACE_LIST"))
        async with (
            await world.login(who) as ann,
            await world.login(await admin.create_principal("nobody")) as nobody,
        ):
            hidden = await ann.post(EXPLAIN, json={"operation": "load-table", "target": TABLE})
            missing = await ann.post(
                EXPLAIN, json={"operation": "load-table", "target": {**TABLE, "table": "u"}}
            )
            catalog = await nobody.post(EXPLAIN, json={"operation": "load-catalog", "target": TABLE})

    assert error_of(hidden) == error_of(missing) == (404, "NoSuchTableException")
    assert hidden.json()["error"]["message"].replace("a.t", "a.u") == missing.json()["error"]["message"]
    assert error_of(catalog) == (404, "NoSuchWarehouseException")
