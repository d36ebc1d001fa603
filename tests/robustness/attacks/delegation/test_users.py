"""Users with rights on tables of their own try what purges and tasks could do for them elsewhere."""

import secrets
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import MANAGEMENT, Grant
from cynosure.testing.catalog_storm.clients import SCHEMA
from tests.robustness.attacks.user import LAKE, MakeUser, User, assert_forbidden

pytestmark = pytest.mark.anyio

OURS = "/api/catalog/cynosure/v1/lake"
TABLE_RIGHTS = ("TABLE_CREATE", "TABLE_DROP", "TABLE_WRITE_DATA", "TABLE_FULL_METADATA", "TABLE_LIST")


@pytest.fixture
async def namespace(root: httpx.AsyncClient) -> str:
    name = f"n{secrets.token_hex(4)}"
    assert (await root.post(f"{LAKE}/namespaces", json={"namespace": [name]})).status_code == 200
    return name


@pytest.fixture
async def user(make_user: MakeUser, namespace: str) -> User:
    """Somebody who may do everything to tables of one namespace."""
    return await make_user(*(Grant(each, (namespace,)) for each in TABLE_RIGHTS))


async def make_table(http: httpx.AsyncClient, namespace: str, **more: Any) -> str:
    name = f"t{secrets.token_hex(4)}"
    body = {"name": name, "schema": SCHEMA, **more}
    made = await http.post(f"{LAKE}/namespaces/{namespace}/tables", json=body)
    assert made.status_code == 200, made.text
    return name


async def purge(http: httpx.AsyncClient, namespace: str, name: str) -> httpx.Response:
    path = f"{LAKE}/namespaces/{namespace}/tables/{name}"
    return await http.delete(path, params={"purgeRequested": "true"})


async def find_task(root: httpx.AsyncClient, table: str) -> str:
    tasks = (await root.get(f"{MANAGEMENT}/tasks")).json()["tasks"]
    return next(str(each["task_id"]) for each in tasks if each["table"].endswith(f".{table}"))


async def test_one_s_own_table_is_purged_and_nobody_else_s(
    root: httpx.AsyncClient, user: User, namespace: str
) -> None:
    own, other = await make_table(user.http, namespace), await make_table(root, "ns")

    assert (await purge(user.http, namespace, own)).status_code == 204
    assert_forbidden(await purge(user.http, "ns", other))
    assert (await root.head(f"{LAKE}/namespaces/ns/tables/{other}")).status_code in (200, 204)


async def test_rights_on_tables_open_nothing_that_is_for_the_service(user: User) -> None:
    for method, path, body in (
        ("GET", "/tombstones", None),
        ("GET", "/tombstones/1", None),
        ("GET", "/tombstones/1/credentials", None),
        ("POST", "/tombstones/1/purging", {"task-id": "x"}),
        ("POST", "/tombstones/1/ended", {"task-id": "x"}),
    ):
        assert_forbidden(await user.send(method, OURS + path, body), "TABLE_")


async def test_a_stranger_learns_of_no_task_whether_it_is_there(
    root: httpx.AsyncClient, user: User, namespace: str
) -> None:
    name = await make_table(user.http, namespace)
    assert (await purge(user.http, namespace, name)).status_code == 204
    task_id = await find_task(root, name)

    def told(answer: httpx.Response) -> str:
        assert_forbidden(answer)
        message: str = answer.json()["error"]["message"]
        return message

    for method, end in (("GET", ""), ("GET", "/history"), ("POST", "/retry"), ("POST", "/cancel")):
        there = told(await user.manage(method, f"/tasks/{task_id}{end}"))
        nowhere = told(await user.manage(method, f"/tasks/{'0' * 8}{task_id[8:]}{end}"))
        assert there == nowhere
        assert "lake" not in there
    told(await user.manage("GET", "/tasks"))
    told(await user.manage("GET", "/tasks?catalog=lake"))


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a/b", "x\r\nSet-Cookie: a=b", "\u202egnp", "a" * 5_000])
async def test_ids_that_are_none_lead_nowhere(root: httpx.AsyncClient, name: str) -> None:
    quoted = httpx.URL("http://x").copy_with(params={"a": name}).query.decode().removeprefix("a=")
    for path in (f"{OURS}/tombstones/{quoted}", f"{MANAGEMENT}/tasks/{quoted}"):
        answer = await root.get(path.replace("+", "%20"))
        assert 400 <= answer.status_code < 500, answer.text
        assert "set-cookie" not in answer.headers


async def test_whoever_may_purge_in_the_catalog_ends_no_purge_by_word(
    make_user: MakeUser, root: httpx.AsyncClient, namespace: str
) -> None:
    purger = await make_user("TABLE_DROP", "TABLE_WRITE_DATA")
    name = await make_table(root, namespace)
    entity = "999999999"
    for end in ("purging", "ended"):
        answer = await purger.send("POST", f"{OURS}/tombstones/{entity}/{end}", {"task-id": "x"})
        assert answer.status_code == 404, answer.text

    # A table that was not dropped has no tombstone, whoever asks for one.
    assert (await root.head(f"{LAKE}/namespaces/{namespace}/tables/{name}")).status_code in (200, 204)


async def test_nobody_s_schedule_or_order_runs_on_another_s_table(
    root: httpx.AsyncClient, user: User, namespace: str
) -> None:
    other = await make_table(root, "ns")
    body = {"operation": "TABLE_PURGE", "properties": {"dryRun": "true"}}

    assert_forbidden(await user.send("POST", f"{OURS}/namespaces/ns/tables/{other}/maintenance", body))
