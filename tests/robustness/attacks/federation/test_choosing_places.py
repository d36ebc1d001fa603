"""Somebody chooses the directory of a table that nobody here has seen: its files stay closed to them (I121).

The remotes of these tests give every place to whoever asks, as many do.
"""

from typing import Any

import httpx
import pytest

from cynosure.auth.caller import Caller
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.small_access import P, on_catalog, on_namespace
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import Far, T
from tests.federation.served import BASE, client_of

pytestmark = pytest.mark.anyio

OWN = f"{BASE}/v1/far/namespaces/own"
VIEW = {
    "name": "v",
    "schema": {**SCHEMA, "schema-id": 0},
    "properties": {},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        "default-namespace": [],
    },
}


async def add_writer(far: Far) -> Caller:
    """Somebody who may do everything in the namespace `own`, and nothing elsewhere."""
    far.put(T)
    far.remote.namespaces["own",] = {}
    await far.federation.see_namespace(far.catalog, ROOT, ("own",))
    rights = (P.NAMESPACE_FULL_METADATA, P.TABLE_FULL_METADATA, P.TABLE_WRITE_DATA, P.VIEW_FULL_METADATA)
    return await far.people.add("ann", far.catalog, *on_namespace(("own",), *rights))


def writes(far: Far) -> list[str]:
    return [each for each in far.remote.asked if each.startswith(("create", "register", "commit", "update"))]


def bodies(there: str) -> dict[str, tuple[str, Any]]:
    """What names the directory `there` in one way or another."""
    table = {"name": "mine", "schema": SCHEMA}
    properties = {"properties": {"write.data.path": there}}
    metadata = f"{there}/metadata/00001-memory.metadata.json"
    return {
        "location": ("/tables", {**table, "location": there}),
        "above": ("/tables", {**table, "location": there.rpartition("/")[0]}),
        "below": ("/tables", {**table, "location": f"{there}/data"}),
        "staged": ("/tables", {**table, "location": there, "stage-create": True}),
        "path": ("/tables", {**table, **properties}),
        "registered": ("/register", {"name": "mine", "metadata-location": metadata}),
        "registered view": ("/register-view", {"name": "mine", "metadata-location": metadata}),
        "view": ("/views", {**VIEW, "location": there}),
        "view's path": ("/views", {**VIEW, "properties": {"write.metadata.path": there}}),
        "namespace": ("/properties", {"updates": {"location": there}}),
    }


async def test_an_unseen_tables_directory_is_given_to_nobody(far: Far) -> None:
    ann, there = await add_writer(far), f"{far.catalog.base.text}/orders"
    answers: dict[str, httpx.Response] = {}
    async with client_of(far, ann) as client:
        for name, (path, body) in bodies(there).items():
            answers[name] = await client.post(f"{OWN}{path}", json=body)
        child = {"namespace": ["own", "child"], "properties": {"location": there}}
        answers["child"] = await client.post(f"{BASE}/v1/far/namespaces", json=child)

    assert {name: each.status_code for name, each in answers.items()} == dict.fromkeys(answers, 403)
    assert writes(far) == []
    async with client_of(far) as root:
        assert (await root.get(f"{BASE}/v1/far/namespaces/ns/tables/orders")).status_code == 200


async def test_nothing_is_made_where_all_of_the_catalog_is(far: Far) -> None:
    """Not even by who may do everything: the remote would make it, and it could not be shown here."""
    far.remote.namespaces["own",] = {}
    await far.federation.see_namespace(far.catalog, ROOT, ("own",))
    everywhere = bodies(far.catalog.base.text)
    async with client_of(far) as root:
        for name in ("location", "above", "staged", "path", "view", "view's path"):
            path, body = everywhere[name]
            answer = await root.post(f"{OWN}{path}", json=body)
            assert answer.status_code == 403, (name, answer.text)
    assert writes(far) == []


def snapshot_in(there: str) -> dict[str, Any]:
    return {
        "snapshot-id": 1,
        "sequence-number": 1,
        "timestamp-ms": 1_767_225_660_000,
        "manifest-list": f"{there}/metadata/snap-1.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }


def statistics_in(there: str) -> dict[str, Any]:
    return {
        "snapshot-id": 1,
        "statistics-path": f"{there}/metadata/1.stats",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }


async def test_a_table_is_not_made_there_by_a_commit(far: Far) -> None:
    ann, there = await add_writer(far), f"{far.catalog.base.text}/orders"
    updates = [
        {"action": "assign-uuid", "uuid": "0197f3a2-7c1e-7b3a-9d2e-5a1b2c3d4e5f"},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": there},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    async with client_of(far, ann) as client:
        refused = await client.post(f"{OWN}/tables/mine", json=body)
        updates[-1] = {"action": "set-location", "location": f"{far.catalog.base.text}/own/mine"}
        made = await client.post(f"{OWN}/tables/mine", json=body)

    assert (refused.status_code, made.status_code) == (403, 200), refused.text + made.text


async def test_a_table_of_ones_own_is_not_moved_there(far: Far) -> None:
    ann, there = await add_writer(far), f"{far.catalog.base.text}/orders"
    async with client_of(far, ann) as client:
        made = await client.post(f"{OWN}/tables", json={"name": "mine", "schema": SCHEMA})
        assert made.status_code == 200, made.text
        asked = len(far.remote.asked)
        updates: list[dict[str, Any]] = [
            {"action": "set-location", "location": there},
            {"action": "set-properties", "updates": {"write.data.path": there}},
            {"action": "set-properties", "updates": {"write.metadata.path": f"{there}/metadata"}},
            {"action": "add-snapshot", "snapshot": snapshot_in(there)},
            {"action": "set-statistics", "statistics": statistics_in(there)},
        ]
        for update in updates:
            body = {"requirements": [], "updates": [update]}
            refused = await client.post(f"{OWN}/tables/mine", json=body)
            many = {"table-changes": [{"identifier": {"namespace": ["own"], "name": "mine"}, **body}]}
            together = await client.post(f"{BASE}/v1/far/transactions/commit", json=many)
            assert (refused.status_code, together.status_code) == (403, 403), refused.text + together.text
        plain = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        assert (await client.post(f"{OWN}/tables/mine", json=plain)).status_code == 200

    assert [each for each in far.remote.asked[asked:] if each.startswith("commit")] == ["commit-table"]


async def test_who_may_write_a_namespace_chooses_inside_it(far: Far) -> None:
    ann, base = await add_writer(far), far.catalog.base.text
    async with client_of(far, ann) as client:
        inside = {"name": "mine", "schema": SCHEMA, "location": f"{base}/own/mine"}
        beside = {"name": "other", "schema": SCHEMA, "location": f"{base}/owner/mine"}

        assert (await client.post(f"{OWN}/tables", json=inside)).status_code == 200
        assert (await client.post(f"{OWN}/tables", json=beside)).status_code == 403


async def test_where_a_namespace_is_everywhere_that_is_no_choice(far: Far) -> None:
    # As Hive's `default`, whose directory holds all the others.
    ann, base = await add_writer(far), far.catalog.base.text
    far.remote.namespaces["own",] = {"location": base}
    async with client_of(far, ann) as client:
        wanted = {"name": "mine", "schema": SCHEMA, "location": f"{base}/orders"}
        refused = await client.post(f"{OWN}/tables", json=wanted)

    assert refused.status_code == 403
    assert writes(far) == []


async def test_who_may_write_all_tables_chooses_anything(far: Far) -> None:
    await add_writer(far)
    bob = await far.people.add("bob", far.catalog, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    async with client_of(far, bob) as client:
        wanted = {"name": "mine", "schema": SCHEMA, "location": f"{far.catalog.base.text}/elsewhere"}

        assert (await client.post(f"{OWN}/tables", json=wanted)).status_code == 200


@pytest.mark.parametrize(("right", "status"), [("CATALOG_MANAGE_METADATA", 200), ("TABLE_CREATE", 403)])
async def test_who_may_rename_all_tables_chooses_too(far: Far, right: str, status: int) -> None:
    await add_writer(far)
    bob = await far.people.add("bob", far.catalog, *on_catalog(P[right]))
    async with client_of(far, bob) as client:
        wanted = {"name": "mine", "schema": SCHEMA, "location": f"{far.catalog.base.text}/elsewhere"}

        assert (await client.post(f"{OWN}/tables", json=wanted)).status_code == status


async def test_from_whom_rows_are_hidden_chooses_nothing(far: Far) -> None:
    await add_writer(far)
    await far.see()
    bob = await far.people.add("bob", far.catalog, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    policies, policy = f"{BASE}/polaris/v1/far/namespaces/own/policies", {"name": "p"}
    content = '{"enable": true, "filter": "data = current_user()"}'
    async with client_of(far) as root, client_of(far, bob) as client:
        await root.post(policies, json={**policy, "type": "cynosure.row-filter", "content": content})
        target = {"target": {"type": "namespace", "path": ["ns"]}}
        attached = await root.put(f"{policies}/p/mappings", json=target)
        wanted = {"name": "mine", "schema": SCHEMA, "location": f"{far.catalog.base.text}/ns/unseen"}
        refused = await client.post(f"{OWN}/tables", json=wanted)
        left_out = await client.post(f"{OWN}/tables", json={"name": "mine", "schema": SCHEMA})

    assert attached.is_success, attached.text
    assert (refused.status_code, left_out.status_code) == (403, 200), refused.text + left_out.text
