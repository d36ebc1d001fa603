"""Answers tell no secret, and strangers nothing; who watches is told of what was refused."""

import json
import secrets

import pytest

from cynosure.testing.admin import MANAGEMENT, Admin
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.known_secrets import KNOWN

from .user import LAKE, TOKENS, MakeUser, assert_forbidden

pytestmark = pytest.mark.anyio


async def test_configuration_and_errors_tell_no_secret_and_nothing_to_strangers(
    server: CatalogServer, admin: Admin, make_user
) -> None:
    name, key = f"c{secrets.token_hex(4)}", KNOWN.add(secrets.token_hex(20))
    storage = {
        "storageType": "S3",
        "endpoint": "http://127.0.0.1:1",
        "region": "us-east-1",
        "pathStyleAccess": True,
        "accessKeyId": "AKIA0000000000000000",
        "secretAccessKey": key,
    }
    await admin.create_catalog(name, f"s3://bucket-{name}/base", storage=storage)
    await admin.grant_content(name)
    nobody = await make_user()

    told = [
        await admin.http.get("/api/catalog/v1/config", params={"warehouse": name}),
        await admin.http.get(f"{MANAGEMENT}/catalogs/{name}"),
        await admin.http.get(f"{MANAGEMENT}/catalogs"),
        await admin.http.post(f"/api/catalog/v1/{name}/namespaces", json={"namespace": ["ns"]}),
        await admin.http.post(
            f"/api/catalog/v1/{name}/namespaces/ns/tables", json={"name": "t", "schema": SCHEMA}
        ),
        await admin.http.post(f"{MANAGEMENT}/principals", json={"principal": {"name": "SYSTEM$x", "s": key}}),
        await nobody.send("GET", f"/api/catalog/v1/config?warehouse={name}"),
        await nobody.manage("GET", f"/catalogs/{name}"),
        await admin.http.get("/openapi.json"),
        await admin.http.get("/metrics"),
    ]

    for answer in told:
        assert key not in answer.text, str(answer.request.url)
        assert list(KNOWN.search_bytes(answer.content, str(answer.request.url))) == []
    assert told[4].status_code >= 500, "the storage cannot be reached"
    async with server.stranger() as http:
        for path in ("/api/catalog/v1/config?warehouse=lake", f"{LAKE}/namespaces", f"{MANAGEMENT}/catalogs"):
            answer = await http.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "lake" not in answer.text


async def test_a_stranger_learns_from_no_status_what_exists(
    server: CatalogServer, make_user: MakeUser
) -> None:
    """Without a token all is 401; a login says the same for a wrong secret and for an unknown client."""
    user = await make_user("TABLE_READ_DATA")
    async with server.stranger() as http:
        for method, path in [
            ("GET", f"{LAKE}/namespaces/ns"),
            ("GET", f"{LAKE}/namespaces/absent"),
            ("GET", "/api/catalog/v1/absent/namespaces"),
            ("HEAD", f"{LAKE}/namespaces/ns/tables/t"),
            ("HEAD", f"{LAKE}/namespaces/ns/tables/absent"),
            ("POST", f"{LAKE}/namespaces"),
            ("GET", f"{MANAGEMENT}/principals/root"),
            ("GET", f"{MANAGEMENT}/principals/absent"),
        ]:
            assert (await http.request(method, path)).status_code == 401, f"{method} {path}"

        def form(client_id: str, secret: str) -> dict[str, str]:
            return {
                "grant_type": "client_credentials",
                "client_id": client_id,
                "client_secret": secret,
                "scope": "PRINCIPAL_ROLE:ALL",
            }

        wrong = await http.post(TOKENS, data=form(user.credential.client_id, secrets.token_hex(16)))
        unknown = await http.post(TOKENS, data=form(secrets.token_hex(8), secrets.token_hex(16)))
    assert (wrong.status_code, wrong.json()) == (unknown.status_code, unknown.json())
    assert wrong.status_code == 401


async def test_denials_are_told_to_those_who_watch(
    server: CatalogServer, admin: Admin, make_user: MakeUser
) -> None:
    user = await make_user()
    refused = await user.send("DELETE", f"{LAKE}/namespaces/ns/tables/t")
    assert_forbidden(refused, "TABLE_DROP")

    events = await admin.send("GET", f"/cynosure/events?principal={user.name}&decision=denied")

    assert [(event["principal"], event["decision"]) for event in events["events"]] == [(user.name, "denied")]
    told = json.dumps(events["events"][0])
    assert "TABLE_DROP" in told
    assert refused.headers.get("x-request-id", "-") in told


async def test_events_and_changes_tell_no_secret(admin: Admin, make_user: MakeUser) -> None:
    """Nor does the log of the server: that is searched when the run ends."""
    user = await make_user("TABLE_READ_DATA")
    await Admin(user.http).rotate(user.name)
    await admin.reset(user.name)

    events = await admin.send("GET", f"/cynosure/events?principal={user.name}&limit=1000")
    told = [
        json.dumps(events),
        (await admin.http.get("/api/catalog/cynosure/v1/lake/changes?from=oldest&limit=1000")).text,
        json.dumps(await admin.send("GET", f"/principals/{user.name}")),
    ]

    assert "rotate-credentials" in told[0]
    assert [leak for text in told for leak in KNOWN.search_bytes(text.encode(), "answer")] == []
