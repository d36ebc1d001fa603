"""Every value of every body replaced by something absurd: refused or taken, never a server error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.world import World

pytestmark = pytest.mark.anyio

ABSURD: list[Any] = [
    None,
    True,
    -1,
    2**63,
    1e400,
    "",
    "\x00",
    "\ud800",
    "../..",
    "x" * 5_000,
    "SYSTEM$",
    [],
    ["\ud800"],
    {},
    {"\ud800": "\ud800"},
    {"": ""},
]


def bodies(world: World) -> list[tuple[str, str, Any]]:
    s3 = {
        "storageType": "S3",
        "region": "eu-west-1",
        "endpoint": "https://s3.example.com",
        "endpointInternal": "https://s3.internal",
        "stsEndpoint": "https://sts.example.com",
        "roleArn": "arn:aws:iam::1:role/x",
        "externalId": "id",
        "userArn": "arn:aws:iam::1:user/x",
        "currentKmsKey": "arn:aws:kms:r:1:key/x",
        "allowedKmsKeys": ["arn:aws:kms:r:1:key/y"],
        "storageName": "n",
        "accessKeyId": "AKIA",
        "secretAccessKey": "secret",
        "allowedLocations": ["s3://bucket/absurd"],
    }
    base = {"default-base-location": "s3://bucket/absurd", "k": "v"}
    catalog = {"type": "INTERNAL", "name": "absurd", "properties": base, "storageConfigInfo": s3}
    role = {"name": "absurd", "properties": {"k": "v"}}
    update = {"currentEntityVersion": 99, "properties": {"k": "v"}}
    place = {"catalog": "lake", "namespace": ["a"], "table": "t"}
    return [
        ("POST", "/catalogs", {"catalog": catalog, "adminPrincipalRoles": ["service_admin"]}),
        (
            "PUT",
            "/catalogs/lake",
            {**update, "storageConfigInfo": world.catalog("lake")["catalog"]["storageConfigInfo"]},
        ),
        (
            "POST",
            "/principals",
            {"principal": {**role, "clientId": "c"}, "credentialRotationRequired": False},
        ),
        ("PUT", "/principals/nobody", update),
        ("POST", "/principals/nobody/reset", {"clientId": "an-id", "clientSecret": "a-secret"}),
        ("PUT", "/principals/nobody/principal-roles", {"principalRole": {"name": "absurd"}}),
        ("POST", "/principal-roles", {"principalRole": {**role, "federated": False}}),
        ("PUT", "/principal-roles/service_admin", update),
        ("PUT", "/principal-roles/service_admin/catalog-roles/lake", {"catalogRole": {"name": "absurd"}}),
        ("POST", "/catalogs/lake/catalog-roles", {"catalogRole": role}),
        ("PUT", "/catalogs/lake/catalog-roles/catalog_admin", update),
        *(
            (
                method,
                "/catalogs/lake/catalog-roles/catalog_admin/grants",
                {"grant": {"type": kind, "namespace": ["a"], f"{kind}Name": "x", "privilege": privilege}},
            )
            for method in ("PUT", "POST")
            for kind, privilege in (("table", "TABLE_DROP"), ("view", "VIEW_DROP"), ("policy", "POLICY_READ"))
        ),
        (
            "POST",
            "/cynosure/explain-access",
            {
                "principal": "root",
                "operation": "rename-table",
                "target": place,
                "secondary": place,
                "updates": ["add-schema"],
            },
        ),
        ("PUT", "/cynosure/principals/nobody/trusted-service", {"trusted": False}),
    ]


def mangled(value: Any) -> Iterator[Any]:
    """The value with one part replaced, each part by each absurdity."""
    yield from ABSURD
    if isinstance(value, dict):
        for name, part in value.items():
            for absurd in mangled(part):
                yield {**value, name: absurd}
    elif isinstance(value, list):
        for at, part in enumerate(value):
            for absurd in mangled(part):
                yield [*value[:at], absurd, *value[at + 1 :]]


async def test_no_absurdity_is_a_server_error(refusing: Any) -> None:
    sent = 0
    for method, path, body in bodies(refusing.world):
        for absurd in mangled(body):
            content = json.dumps(absurd).encode()
            answer = await refusing.root.request(
                method, path, content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code < 500, (method, path, absurd, answer.text)
            assert answer.is_success or answer.json()["error"]["code"] == answer.status_code
            sent += 1
    assert sent > 1_000


@pytest.mark.parametrize("segment", ["%00", "%ED%A0%80", "%FF", "%", "x" * 300, "%20", "SYSTEM%24"])
async def test_no_path_is_a_server_error(refusing: Any, segment: str) -> None:
    for path in (
        f"/catalogs/{segment}",
        f"/principals/{segment}/rotate",
        f"/principal-roles/{segment}/catalog-roles/lake",
        f"/catalogs/lake/catalog-roles/{segment}/grants",
    ):
        for method in ("GET", "POST", "DELETE"):
            answer = await refusing.root.request(method, path)
            assert answer.status_code < 500, (method, path, answer.text)
            assert not answer.is_success
