"""A federated table over HTTP: all that is done with our own tables is done with it (I112, I113)."""

from typing import Any

import httpx
import msgspec
import pytest

from cynosure.testing.small_access import P, on_catalog
from tests.federation.seen_world import FIRST_LOOK, NS, OTHER_UUID, Far, T
from tests.federation.served import BASE, client_of

pytestmark = pytest.mark.anyio

TABLE = f"{BASE}/v1/far/namespaces/ns/tables/orders"
POLICIES = f"{BASE}/polaris/v1/far/namespaces/ns/policies"
ROLES = "/api/management/v1/catalogs/far/catalog-roles"
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
HOUR_MS = 3_600_000


async def restrict(root: httpx.AsyncClient, text: str) -> None:
    content = msgspec.json.encode({"enable": True, "filter": text}).decode()
    made = await root.post(
        POLICIES, json={"name": "filter", "type": "cynosure.row-filter", "content": content}
    )
    assert made.is_success, made.text
    body = {"target": {"type": "table-like", "path": [*NS, T.name]}}
    attached = await root.put(f"{POLICIES}/filter/mappings", json=body)
    assert attached.is_success, attached.text


async def test_a_version_that_the_client_has_is_not_sent_again_until_it_is_another(far: Far) -> None:
    far.put()
    async with client_of(far) as root:
        first = await root.get(TABLE)
        tag = {"If-None-Match": first.headers["etag"]}
        assert (await root.get(TABLE, headers=tag)).status_code == 304
        far.put(name="v2")

        changed = await root.get(TABLE, headers=tag)

    assert changed.status_code == 200
    assert changed.json()["metadata"]["properties"] == {"version": "v2"}


async def test_only_snapshots_that_refs_name_are_sent_when_asked_so(far: Far) -> None:
    far.put(**with_snapshots(far, 3))
    async with client_of(far) as root:
        found = (await root.get(TABLE, params={"snapshots": "refs"})).json()["metadata"]

        assert [each["snapshot-id"] for each in found["snapshots"]] == [3]
        every = (await root.get(TABLE)).json()["metadata"]
    assert [each["snapshot-id"] for each in every["snapshots"]] == [1, 2, 3]


def with_snapshots(far: Far, count: int) -> dict[str, Any]:
    snapshots = [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": number,
            "summary": {"operation": "append"},
            "manifest-list": f"{far.catalog.base.text}/orders/metadata/snap-{number}.avro",
            "schema-id": 0,
        }
        for number in range(1, count + 1)
    ]
    return {
        "snapshots": snapshots,
        "last-sequence-number": count,
        "current-snapshot-id": count,
        "refs": {"main": {"snapshot-id": count, "type": "branch"}},
        "last-updated-ms": count,
    }


async def test_a_row_filter_counts_for_its_table_and_for_the_one_that_replaces_it(far: Far) -> None:
    far.put()
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    async with client_of(far) as root, client_of(far, ann) as client:
        await root.get(f"{BASE}/v1/far/namespaces/ns")
        await restrict(root, "data = current_user()")
        far.put(name="v2")

        found = (await client.get(TABLE, headers=VENDED)).json()
        planned = (await client.post(f"{TABLE}/plan", json={})).json()

        wanted = found["read-restrictions"]["required-row-filter"]
        assert wanted["right"]["value"] == "ann"
        assert found["metadata"]["properties"] == {"version": "v2"}
        assert planned["read-restrictions"]["required-row-filter"] == wanted
        far.put(uuid=OTHER_UUID)
        anew = (await client.get(TABLE)).json()
    assert anew["metadata"]["table-uuid"] == OTHER_UUID
    assert anew["read-restrictions"]["required-row-filter"] == wanted
    assert await far.disagreements() == []


async def test_a_column_that_a_filter_is_about_cannot_be_taken_from_it_at_the_remote(far: Far) -> None:
    far.put()
    async with client_of(far) as root:
        await root.get(TABLE)
        await restrict(root, "data = current_user()")
        fields = [{"id": 1, "name": "id", "required": True, "type": "long"}]
        far.put(schemas=[{"type": "struct", "schema-id": 0, "fields": fields}])

        refused = await root.get(TABLE)

    assert refused.status_code == 403


async def test_a_grant_is_on_the_table_that_the_remote_has(far: Far) -> None:
    far.put()
    async with client_of(far) as root:
        await root.post(ROLES, json={"catalogRole": {"name": "readers"}})
        grant = {"type": "table", "namespace": [*NS], "tableName": T.name, "privilege": "TABLE_READ_DATA"}

        granted = await root.put(f"{ROLES}/readers/grants", json={"grant": grant})
        missing = await root.put(f"{ROLES}/readers/grants", json={"grant": {**grant, "tableName": "missing"}})
        nowhere = {"type": "namespace", "namespace": ["nowhere"], "privilege": "TABLE_READ_DATA"}
        refused = await root.put(f"{ROLES}/readers/grants", json={"grant": nowhere})

        assert (granted.status_code, missing.status_code, refused.status_code) == (201, 404, 404)
        listed = (await root.get(f"{ROLES}/readers/grants")).json()["grants"]
    assert listed == [grant]


async def test_a_grant_by_name_needs_no_table(far: Far) -> None:
    await far.set_properties(grants="by-name")
    async with client_of(far) as root:
        await root.post(ROLES, json={"catalogRole": {"name": "readers"}})
        grant = {"type": "table", "namespace": [*NS], "tableName": T.name, "privilege": "TABLE_READ_DATA"}

        granted = await root.put(f"{ROLES}/readers/grants", json={"grant": grant})

        assert granted.status_code == 201
        assert (await root.get(f"{ROLES}/readers/grants")).json()["grants"] == [grant]
        assert far.remote.asked == []
        assert (await root.get(TABLE)).status_code == 404


async def test_access_is_explained_for_what_the_remote_has(far: Far) -> None:
    far.put()
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.TABLE_READ_DATA))
    target = {"catalog": "far", "namespace": [*NS], "table": T.name}
    async with client_of(far, ann) as client:
        body = {"operation": "load-table", "target": target}
        found = await client.post("/api/management/v1/cynosure/explain-access", json=body)

    assert found.json()["allowed"] is True
    assert far.remote.asked == FIRST_LOOK


@pytest.mark.parametrize(
    ("credentials", "privilege", "expected"),
    [
        ("remote", P.TABLE_WRITE_DATA, ["inside"]),
        ("remote", P.TABLE_READ_DATA, []),
        ("none", P.TABLE_WRITE_DATA, []),
        ("own", P.TABLE_WRITE_DATA, []),
    ],
)
async def test_credentials_of_the_remote_are_passed_on_for_the_table_only_and_to_writers_only(
    far: Far, credentials: str, privilege: P, expected: list[str]
) -> None:
    await far.set_properties(credentials=credentials)
    base = far.catalog.base.text
    now_ms = far.directory.shared.persistence.clock.now_us() // 1_000
    keys = {"s3.secret-access-key": "k", "s3.session-token-expires-at-ms": str(now_ms + HOUR_MS)}
    years = {"s3.session-token-expires-at-ms": str(now_ms + 50_000 * HOUR_MS)}
    given = [
        (f"{base}/orders", {"s3.access-key-id": "inside", **keys, "s3.endpoint": "https://evil.example"}),
        (base, {"s3.access-key-id": "above", **keys}),
        (f"{base}/other", {"s3.access-key-id": "beside", **keys}),
        ("s3", {"s3.access-key-id": "anywhere", **keys}),
        (f"{base}/orders", {"s3.access-key-id": "past", "s3.session-token-expires-at-ms": "1"}),
        (f"{base}/orders", {"s3.access-key-id": "for ever"}),
        (f"{base}/orders", {"s3.access-key-id": "for years", **keys, **years}),
    ]
    far.remote.put(T, far.metadata(), storage_credentials=given, config={"s3.access-key-id": "config"})
    ann = await far.people.add("ann", far.catalog, *on_catalog(privilege))
    async with client_of(far, ann) as client:
        loaded = await client.get(TABLE, headers=VENDED)
        newer = await client.get(f"{TABLE}/credentials")

    for answer in (loaded, newer):
        assert answer.status_code == 200, answer.text
        found = answer.json().get("storage-credentials", [])
        assert [each["config"]["s3.access-key-id"] for each in found] == expected
        assert "evil" not in answer.text


async def test_nobody_is_told_of_a_remote_that_is_down_who_may_know_nothing_of_it(far: Far) -> None:
    far.remote.is_down = True
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.CATALOG_READ_PROPERTIES))
    async with client_of(far) as root, client_of(far, ann) as client:
        assert (await client.get(TABLE)).status_code == 404
        assert far.remote.asked == []
        down = await root.get(TABLE)

    assert down.status_code == 503
