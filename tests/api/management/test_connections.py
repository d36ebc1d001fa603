"""Connections of federated catalogs over the management API."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.catalog.check_connection import ConnectionRules
from cynosure.testing.known_secrets import KNOWN
from tests.api.world import World, open_world

pytestmark = pytest.mark.anyio

SECRET = KNOWN.add("SecretOfARemoteCatalog000000", kind="the secret of a connection")
KEY_ID = KNOWN.add("AccessKeyIdOfARemote00000000", kind="the key id of a connection")
OAUTH = {
    "authenticationType": "OAUTH",
    "clientId": "us",
    "tokenUri": "https://tokens.example.com/token",
    "scopes": ["PRINCIPAL_ROLE:ALL"],
}
SIGV4 = {
    "authenticationType": "SIGV4",
    "signingRegion": "eu-west-1",
    "signingName": "glue",
    "roleArn": "arn:aws:iam::123456789012:role/lake",
    "roleSessionName": "lake",
    "externalId": "lake:1",
    "sessionPolicy": "{}",
    "stsEndpoint": "https://sts.example.com",
}
REST: dict[str, Any] = {
    "connectionType": "ICEBERG_REST",
    "uri": "https://catalog.example.com/api",
    "remoteCatalogName": "sales",
    "authenticationParameters": OAUTH,
    "properties": {"header.x-team": "lake"},
}
SHAPES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "oauth": (REST, {"clientSecret": SECRET}),
    "bearer": (
        {**REST, "authenticationParameters": {"authenticationType": "BEARER"}},
        {"bearerToken": SECRET},
    ),
    "sigv4": (
        {**REST, "authenticationParameters": SIGV4},
        {"accessKeyId": KEY_ID, "secretAccessKey": SECRET},
    ),
    "implicit": ({**REST, "authenticationParameters": {"authenticationType": "IMPLICIT"}}, {}),
    "hive": (
        {
            "connectionType": "HIVE",
            "uri": "thrift://localhost:9083",
            "warehouse": "its base location",
            "authenticationParameters": {"authenticationType": "IMPLICIT"},
        },
        {},
    ),
    "glue": (
        {
            "connectionType": "GLUE",
            "uri": "https://glue.example.com",
            "remoteCatalogName": "123456789012",
            "warehouse": "its base location",
            "authenticationParameters": SIGV4,
        },
        {"accessKeyId": KEY_ID, "secretAccessKey": SECRET},
    ),
    "sql": (
        {
            "connectionType": "SQL",
            "uri": "postgresql://db.example.com:5432/lake",
            "remoteCatalogName": "sales",
            "authenticationParameters": {"authenticationType": "PASSWORD", "user": "us"},
        },
        {"password": SECRET},
    ),
}


@pytest.fixture
async def lenient(tmp_path: Path) -> AsyncIterator[World]:
    """A server whose operator allows connections without authentication."""
    async with open_world(tmp_path, connections=ConnectionRules(is_implicit_allowed=True)) as world:
        yield world


def with_secrets(info: dict[str, Any], secrets: dict[str, str]) -> dict[str, Any]:
    return {**info, "authenticationParameters": {**info["authenticationParameters"], **secrets}}


def federated(world: World, info: dict[str, Any], name: str = "theirs") -> dict[str, Any]:
    return world.catalog(name, type="EXTERNAL", connectionConfigInfo=info)


async def make(world: World, root: httpx.AsyncClient, secret: str = SECRET) -> dict[str, Any]:
    body = federated(world, with_secrets(REST, {"clientSecret": secret}))
    answer = await root.post("/catalogs", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def put(root: httpx.AsyncClient, **change: Any) -> httpx.Response:
    return await root.put("/catalogs/theirs", json=change)


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_field_comes_back_but_for_secrets(lenient: World, shape: str) -> None:
    info, secrets = SHAPES[shape]
    if "warehouse" in info:
        info = {**info, "warehouse": f"file://{lenient.folder}/theirs"}
    async with await lenient.login(lenient.root) as root:
        body = federated(lenient, {**with_secrets(info, secrets), "serviceIdentity": {"x": "y"}})
        made = await root.post("/catalogs", json=body)
        assert made.status_code == 201, made.text
        found = await root.get("/catalogs/theirs")
        listed = await root.get("/catalogs")

    assert found.json()["type"] == "EXTERNAL"
    for answer in (made.json(), found.json(), listed.json()["catalogs"][0]):
        assert answer["connectionConfigInfo"] == info


async def test_what_has_a_usual_value_may_be_left_out(world: World, root: httpx.AsyncClient) -> None:
    keys = {"accessKeyId": KEY_ID, "secretAccessKey": SECRET}
    proof = {"authenticationType": "SIGV4", "signingRegion": "cn-north-1", **keys}
    glue = {"connectionType": "GLUE", "authenticationParameters": proof, "uri": "", "properties": None}

    answer = await root.post("/catalogs", json=federated(world, glue))

    assert answer.json()["connectionConfigInfo"] == {
        "connectionType": "GLUE",
        "uri": "https://glue.cn-north-1.amazonaws.com.cn",
        "authenticationParameters": {
            "authenticationType": "SIGV4",
            "signingRegion": "cn-north-1",
            "signingName": "glue",
        },
    }


async def test_secrets_are_in_no_answer_event_or_log(
    world: World, root: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    made = await make(world, root)
    again = await root.post("/catalogs", json=federated(world, with_secrets(REST, {"clientSecret": SECRET})))
    bad = with_secrets({**REST, "uri": "ftp://x"}, {"clientSecret": SECRET})
    refused = await put(root, connectionConfigInfo=bad)
    wrong = {**bad, "properties": {"x": 1}}
    malformed = await put(root, connectionConfigInfo=wrong)
    changed = await put(root, connectionConfigInfo=with_secrets(REST, {"clientSecret": SECRET}))
    events = await root.get("/cynosure/events")
    config = await root.get("http://test/api/catalog/v1/config?warehouse=theirs")

    said = [made, again, refused, malformed, changed, events, config]
    assert [each.status_code for each in said[1:]] == [409, 400, 400, 200, 200, 200]
    texts = [str(made), *(each.text for each in said[1:]), caplog.text, *capfd.readouterr()]
    assert "catalog-updated" in events.text
    assert "theirs" in events.text
    assert not any(SECRET in each for each in texts)
    assert not any("sealed" in each.lower() for each in texts[:-3])


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "hadoop": ({"connectionType": "HADOOP"}, "connectionType", "ICEBERG_REST, HIVE, GLUE or SQL"),
    "bigquery": ({"connectionType": "BIGQUERY"}, "connectionType", "ICEBERG_REST, HIVE, GLUE or SQL"),
    "gcp": (
        {"authenticationParameters": {"authenticationType": "GCP"}},
        "authenticationParameters.authenticationType",
        "OAUTH, BEARER",
    ),
    "implicit": (
        {"authenticationParameters": {"authenticationType": "IMPLICIT"}},
        "authenticationParameters.authenticationType",
        "federation.allow_implicit",
    ),
    "nothing proved": ({"authenticationParameters": None}, "authenticationParameters", "authenticationType"),
    "no address": ({"uri": None}, "uri", "Give it"),
    "plain": ({"uri": "http://catalog.example.com"}, "uri", "federation.allow_insecure"),
    "user": ({"uri": "https://us:hunter2@catalog.example.com"}, "uri", "without user"),
    "fragment": ({"uri": "https://catalog.example.com#x"}, "uri", "fragment"),
    "scheme": ({"uri": "jdbc:x"}, "uri", "https://"),
    "no client": (
        {"authenticationParameters": {"authenticationType": "OAUTH", "clientSecret": SECRET}},
        "authenticationParameters.clientId",
        "Give it",
    ),
    "no secret": (
        {"authenticationParameters": OAUTH},
        "authenticationParameters.clientSecret",
        "environment",
    ),
    "half a key": (
        {"authenticationParameters": {**SIGV4, "secretAccessKey": SECRET}},
        "authenticationParameters.accessKeyId",
        "accessKeyId and secretAccessKey",
    ),
    "secret property": ({"properties": {"token": "x"}}, "properties", "authenticationParameters"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_refused_names_its_field_and_what_to_do(
    refusing: Any, error_of: Any, case: str
) -> None:
    change, field, fix = REFUSED[case]
    info = {**with_secrets(REST, {"clientSecret": SECRET}), **change}

    answer = await refusing.root.post("/catalogs", json=federated(refusing.world, info))

    assert error_of(answer)[0] == 400
    message = answer.json()["error"]["message"]
    assert f"connectionConfigInfo.{field}'" in message
    assert fix in message
    assert not any(word in message for word in ("hunter2", SECRET))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"connectionType": "FTP"}, "connectionConfigInfo"),
        ({"authenticationParameters": {"authenticationType": "MAGIC"}}, "authenticationParameters"),
        ({"authenticationParameters": {"authenticationType": "SIGV4"}}, "signingRegion"),
        ({"authenticationParameters": {**OAUTH, "clientSecret": [SECRET]}}, "clientSecret"),
    ],
)
async def test_what_cannot_be_read_is_refused_without_being_shown(
    refusing: Any, error_of: Any, change: dict[str, Any], field: str
) -> None:
    answer = await refusing.root.post("/catalogs", json=federated(refusing.world, {**REST, **change}))

    assert error_of(answer)[0] == 400
    assert field in answer.text
    assert SECRET not in answer.text


async def test_an_internal_catalog_has_none(refusing: Any, error_of: Any) -> None:
    info = with_secrets(REST, {"clientSecret": SECRET})
    body = refusing.world.catalog("ours", connectionConfigInfo=info)

    answer = await refusing.root.post("/catalogs", json=body)

    assert error_of(answer)[0] == 400
    assert "connectionConfigInfo" in answer.text
    assert "EXTERNAL" in answer.json()["error"]["message"]


async def test_what_was_read_can_be_sent_back(world: World, root: httpx.AsyncClient) -> None:
    made = await make(world, root)

    sent_back = await put(root, connectionConfigInfo=made["connectionConfigInfo"])
    renamed = await put(root, connectionConfigInfo={**made["connectionConfigInfo"], "remoteCatalogName": "x"})
    untouched = await put(root, properties={"default-base-location": f"file://{world.folder}/theirs"})

    assert [each.status_code for each in (sent_back, renamed, untouched)] == [200] * 3, untouched.text
    assert untouched.json()["connectionConfigInfo"] == {**REST, "remoteCatalogName": "x"}


async def test_another_address_or_name_needs_the_secrets(
    world: World, root: httpx.AsyncClient, error_of: Any
) -> None:
    await make(world, root)
    moved = {**REST, "uri": "https://other.example.com"}
    other = {**REST, "authenticationParameters": {**OAUTH, "clientId": "them"}}

    refused = [await put(root, connectionConfigInfo=each) for each in (moved, other)]
    taken = await put(root, connectionConfigInfo=with_secrets(moved, {"clientSecret": SECRET}))

    for each in refused:
        assert error_of(each)[0] == 400
        assert "Give the secrets together" in each.json()["error"]["message"]
    assert taken.json()["connectionConfigInfo"] == moved


async def test_no_other_catalog_becomes_federated(
    world: World, root: httpx.AsyncClient, error_of: Any
) -> None:
    info = with_secrets(REST, {"clientSecret": SECRET})
    await root.post("/catalogs", json=world.catalog("theirs", type="EXTERNAL"))

    refused = await put(root, connectionConfigInfo=info)

    assert error_of(refused)[0] == 400
    assert "Create another EXTERNAL catalog" in refused.json()["error"]["message"]
    assert "connectionConfigInfo" not in (await root.get("/catalogs/theirs")).json()


async def test_properties_of_federation_go_when_they_are_not_named(
    world: World, root: httpx.AsyncClient, error_of: Any
) -> None:
    await make(world, root)
    base = {"default-base-location": f"file://{world.folder}/theirs"}

    set_ = await put(root, properties={**base, "cynosure.federation.read-only": "true"})
    wrong = await put(root, properties={**base, "cynosure.federation.credentials": "mine"})
    gone = await put(root, properties=base)

    assert set_.json()["properties"]["cynosure.federation.read-only"] == "true"
    assert error_of(wrong)[0] == 400
    assert "own, remote, none" in wrong.json()["error"]["message"]
    assert gone.json()["properties"] == base
