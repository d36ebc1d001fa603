"""What the SQL gateway needs from the catalog for a restricted principal, and that nobody else gets it."""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.appended import data_file
from tests.robustness.attacks.storage.lakes import (
    VENDED,
    Lake,
    assert_denied,
    connect_with,
    key_of,
    make_table,
)
from tests.robustness.attacks.storage.test_restricted import policies_of
from tests.robustness.attacks.test_on_behalf_of import act_for
from tests.robustness.attacks.user import MakeUser, User

pytestmark = pytest.mark.anyio

ABLE = {"X-Cynosure-Capabilities": "mapping-filters, policy-names"}
FILES = 5
CONSTANT = 471_100_220_033_445_566
"""So long that no identifier in an answer holds it by chance."""


class Governed:
    """A table with a row filter that asks a mapping table, and who is filtered."""

    def __init__(
        self, lake: Lake, mallory: User, engine: User, table: str, mapping: str, policy: str
    ) -> None:
        self.lake = lake
        self.mallory = mallory
        self.engine = engine
        self.table = table
        self.mapping = mapping
        self.policy = policy

    @property
    def path(self) -> str:
        return self.lake.path(self.table)

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[httpx.AsyncClient]:
        """The trusted service, on behalf of the principal."""
        async with self.lake.server.stranger() as http:
            given = await act_for(http, self.mallory.login, self.engine.login)
            assert given.status_code == 200, given.text
            http.headers["Authorization"] = f"Bearer {given.json()['access_token']}"
            yield http


@pytest.fixture
async def governed(owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser) -> Governed:
    table, mapping, policy = (f"{each}{secrets.token_hex(4)}" for each in "tmp")
    for name in (table, mapping):
        made = await make_table(owner, lake, name, location=f"{lake.base}/{name}")
        assert made.status_code == 200, made.text
    appended = await owner.post(
        f"{lake.path(table).replace('/v1/', '/cynosure/v1/')}/append",
        json={"data-files": [data_file(f"{lake.base}/{table}", f"f{at}") for at in range(FILES)]},
    )
    assert appended.status_code == 200, appended.text
    mallory, engine = await make_thief(lake, "CATALOG_MANAGE_CONTENT"), await make_thief(lake)
    trust = f"/cynosure/principals/{engine.name}/trusted-service"
    await Admin(owner).send("PUT", trust, {"trusted": True})
    condition = f"id > 10 AND id IN (SELECT id FROM ns.{mapping} WHERE id > {CONSTANT})"
    content = json.dumps({"enable": True, "filter": condition, "roles": [mallory.role]})
    body = {"name": policy, "type": "cynosure.row-filter", "content": content}
    answer = await owner.post(policies_of(lake), json=body)
    assert answer.status_code == 200, answer.text
    target = {"target": {"type": "table-like", "path": ["ns", table]}}
    attached = await owner.put(f"{policies_of(lake)}/{policy}/mappings", json=target)
    assert attached.status_code == 204, attached.text
    return Governed(lake, mallory, engine, table, mapping, policy)


async def test_the_gateway_gets_all_it_needs_to_read(governed: Governed) -> None:
    async with governed.acting() as http:
        loaded = await http.get(governed.path, headers={**VENDED, **ABLE})
        planned = await http.post(f"{governed.path}/plan", json={}, headers={**VENDED, **ABLE})
        refreshed = await http.get(f"{governed.path}/credentials", headers=ABLE)
        listed = await http.get(f"{governed.lake.url}/namespaces/ns/tables")
        views = await http.get(f"{governed.lake.url}/namespaces/ns/views")
        update = {"action": "set-properties", "updates": {"k": "v"}}
        written = await http.post(
            governed.path, json={"requirements": [], "updates": [update]}, headers={**VENDED, **ABLE}
        )

    told = loaded.json()["read-restrictions"]
    leaf = {"type": "in-mapping", "term": {"type": "reference", "id": 1}, "mapping": 0}
    assert told["required-row-filter"]["right"] == leaf
    (mapping,) = told["cynosure-mappings"]
    assert (mapping["namespace"], mapping["name"], mapping["column"]) == (["ns"], governed.mapping, "id")
    assert mapping["policy"] == f"ns.{governed.policy}"
    assert told["cynosure-policies"] == [f"ns.{governed.policy}"]
    plan: dict[str, Any] = planned.json()
    assert plan["status"] == "completed", planned.text
    assert plan["read-restrictions"] == told
    assert len(plan["file-scan-tasks"]) == FILES
    assert refreshed.status_code == listed.status_code == views.status_code == 200
    assert written.status_code == 403
    for answer in (loaded, planned, refreshed):
        s3 = connect_with(governed.lake.store, answer.json()["storage-credentials"][0]["config"])
        bucket, key = key_of(loaded.json()["metadata-location"])
        s3.get_object(Bucket=bucket, Key=key)
        assert_denied(partial(s3.put_object, Bucket=bucket, Key=f"{key}.x", Body=b"x"))


async def test_nobody_else_gets_anything(governed: Governed) -> None:
    paths = [
        ("GET", governed.path),
        ("GET", f"{governed.path}/credentials"),
        ("POST", f"{governed.path}/plan"),
    ]
    async with governed.acting() as engine:
        for http, headers in (
            (engine, {}),
            (engine, {"X-Cynosure-Capabilities": "policy-names"}),
            (engine, {"X-Cynosure-Capabilities": "mapping-filters-2,Mapping-Filters"}),
            (governed.mallory.http, ABLE),
        ):
            for method, path in paths:
                answer = await http.request(
                    method, path, json={} if method == "POST" else None, headers={**VENDED, **headers}
                )
                assert answer.status_code == 403, answer.text
                assert "Read it through the SQL gateway" in answer.text
                assert str(CONSTANT) not in answer.text, "of the mapping's filter"
                assert "s3.access-key-id" not in answer.text


async def test_an_answer_without_names_is_not_still_good_for_who_asks_for_them(
    owner: httpx.AsyncClient, governed: Governed
) -> None:
    content = json.dumps({"enable": True, "filter": "id > 10", "roles": [governed.mallory.role]})
    body = {"content": content, "current-policy-version": 0}
    changed = await owner.put(f"{policies_of(governed.lake)}/{governed.policy}", json=body)
    assert changed.status_code == 200, changed.text
    async with governed.acting() as http:
        plain = await http.get(governed.path)
        etag = plain.headers["etag"]
        named = await http.get(governed.path, headers={**ABLE, "If-None-Match": etag})
        again = await http.get(governed.path, headers={**ABLE, "If-None-Match": named.headers["etag"]})

    assert "cynosure-policies" not in plain.json()["read-restrictions"]
    assert named.json()["read-restrictions"]["cynosure-policies"] == [f"ns.{governed.policy}"]
    assert again.status_code == 304


async def test_what_the_gateway_ran_is_in_the_audit(owner: httpx.AsyncClient, governed: Governed) -> None:
    event = {
        "statement-id": secrets.token_hex(8),
        "outcome": "FINISHED",
        "sql": f"SELECT COUNT(*) FROM ns.{governed.table} WHERE id = ?",
        "tables": [f"{governed.lake.name}.ns.{governed.table}"],
        "policies": [f"ns.{governed.policy}"],
        "rows": 1,
        "bytes": 10,
        "elapsed-ms": 7,
        "engine": "local",
    }
    path = "/api/catalog/cynosure/v1/query-events"
    async with governed.acting() as http:
        told = [await http.post(path, json=event) for _ in range(2)]
        wrong = [
            await http.post(path, json={**event, **each})
            for each in ({"rows": -1}, {"statement-id": ""}, {"sqls": "x"}, {"tables": "x"}, {"engine": 1})
        ]
    refused = await governed.mallory.http.post(path, json={**event, "statement-id": "own"})
    own = await governed.engine.http.post(path, json={**event, "statement-id": "own"})

    assert [each.status_code for each in told] == [204, 204]
    assert {each.status_code for each in wrong} == {400}
    assert refused.status_code == own.status_code == 403
    query = {"operation": "query", "target": f"ns.{governed.table}", "limit": "1000"}
    (kept,) = (await owner.get("/api/management/v1/cynosure/events", params=query)).json()["events"]
    assert (kept["kind"], kept["principal"], kept["actor"]) == (
        "query",
        governed.mallory.name,
        governed.engine.name,
    )
    assert kept["details"]["statement-id"] == event["statement-id"]
