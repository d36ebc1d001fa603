"""What the server signs for a client of a store without a token service, and what it must not. I65."""

import secrets
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import make_client
from tests.robustness.attacks.storage.lakes import SIGNED, VENDED, Lake, key_of, make_table
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio

EMPTY = sha256(b"").hexdigest()


@dataclass(frozen=True)
class Place:
    """A table of the attacker's and one of its victim's, by their addresses in the store."""

    lake: Lake
    name: str
    own: str
    """URL of the table's own prefix, with a slash."""
    victim: str
    bucket_url: str
    victim_key: str
    own_key: str


async def prepare(owner: httpx.AsyncClient, lake: Lake) -> Place:
    name = f"orders{secrets.token_hex(4)}"
    for each in (name, f"{name}2"):
        made = await make_table(owner, lake, each, location=f"{lake.base}/{each}")
        assert made.status_code == 200, made.text
    bucket, key = key_of(f"{lake.base}/{name}/")
    victim = f"{key.removesuffix('/')}2/"
    store = lake.as_owner()
    store.put_object(Bucket=bucket, Key=f"{victim}secret", Body=b"secret")
    store.put_object(Bucket=bucket, Key=f"{key}mine", Body=b"mine")
    url = f"{lake.store.endpoint}/{bucket}"
    return Place(lake, name, f"{url}/{key}", f"{url}/{victim}", url, f"{victim}secret", f"{key}mine")


async def sign(
    http: httpx.AsyncClient,
    at: Place,
    method: str,
    uri: str,
    *,
    headers: dict[str, list[str]] | None = None,
    body: str | None = None,
    table: str = "",
) -> httpx.Response:
    """Ask the catalog to sign a request to the store."""
    wanted: dict[str, Any] = {
        "region": at.lake.store.region,
        "method": method,
        "uri": uri,
        "headers": {"host": [urlsplit(uri).netloc], "x-amz-content-sha256": [EMPTY], **(headers or {})},
    }
    if body is not None:
        wanted["body"] = body
        wanted["headers"]["x-amz-content-sha256"] = [sha256(body.encode()).hexdigest()]
    return await http.post(f"{at.lake.path(table or at.name)}/sign", json=wanted)


async def send(answer: httpx.Response, method: str, content: bytes = b"") -> httpx.Response:
    """Send to the store what was signed."""
    assert answer.status_code == 200, answer.text
    signed = answer.json()
    headers = [(name, value) for name, values in signed["headers"].items() for value in values]
    async with make_client(None) as http:
        return await http.request(method, signed["uri"], headers=headers, content=content)


def is_intact(at: Place) -> bool:
    bucket = at.lake.store.bucket
    found = at.lake.as_owner().get_object(Bucket=bucket, Key=at.victim_key)["Body"].read()
    return bool(found == b"secret")


async def test_a_store_without_a_token_service_is_used_through_signatures(
    owner: httpx.AsyncClient, plain_lake: Lake
) -> None:
    at = await prepare(owner, plain_lake)

    for asked in (VENDED, SIGNED):
        loaded = (await owner.get(plain_lake.path(at.name), headers=asked)).json()
        assert loaded["config"]["s3.remote-signing-enabled"] == "true"
        assert "s3.access-key-id" not in str(loaded)
    body = b"new"
    headers = {"x-amz-content-sha256": [sha256(body).hexdigest()]}
    put = await send(await sign(owner, at, "PUT", f"{at.own}new", headers=headers), "PUT", body)
    got = await send(await sign(owner, at, "GET", f"{at.own}new"), "GET")
    gone = await send(await sign(owner, at, "DELETE", f"{at.own}new"), "DELETE")

    assert (put.status_code, got.content, gone.status_code) == (200, b"new", 204)


URIS = {
    "another table": lambda at: f"{at.victim}secret",
    "dots": lambda at: f"{at.own}../{at.name}2/secret",
    "encoded dots": lambda at: f"{at.own}%2e%2e/{at.name}2/secret",
    "dots encoded twice": lambda at: f"{at.own}%252e%252e/{at.name}2/secret",
    "an encoded slash": lambda at: f"{at.own}..%2F{at.name}2%2Fsecret",
    "two slashes": lambda at: f"{at.own}/../{at.name}2/secret",
    "a backslash": lambda at: f"{at.own}..\\{at.name}2\\secret",
    "the table's prefix without a slash": lambda at: f"{at.own.removesuffix('/')}2/secret",
    "the bucket": lambda at: at.bucket_url,
    "the bucket with a slash": lambda at: f"{at.bucket_url}/",
    "another bucket": lambda at: f"{at.lake.store.endpoint}/another/{at.own_key}",
    "another host": lambda at: at.own.replace("127.0.0.1", "localhost") + "mine",
    "another port": lambda at: f"http://127.0.0.1:1{urlsplit(at.own).path}mine",
    "a user": lambda at: at.own.replace("http://", "http://u:p@") + "mine",
    "another scheme": lambda at: at.own.replace("http://", "ftp://") + "mine",
    "rights of an object": lambda at: f"{at.own}mine?acl",
    "the bucket's policy": lambda at: f"{at.bucket_url}?policy",
    "all uploads": lambda at: f"{at.bucket_url}?uploads",
    "all versions": lambda at: f"{at.bucket_url}?versions&prefix={at.victim_key}",
    "a listing of all": lambda at: f"{at.bucket_url}?list-type=2",
    "a listing of the other": lambda at: f"{at.bucket_url}?list-type=2&prefix={at.victim_key}",
    "a listing of both": lambda at: f"{at.bucket_url}?list-type=2&prefix={at.own_key.removesuffix('/mine')}",
    "two prefixes": lambda at: (
        f"{at.bucket_url}?list-type=2&prefix={at.own_key.removesuffix('mine')}&prefix={at.victim_key}"
    ),
    "a listing with a slash too many": lambda at: f"{at.bucket_url}?list-type=2&prefix=/{at.own_key}",
    "a presigned query": lambda at: f"{at.own}mine?X-Amz-Signature=00&X-Amz-Credential=x",
    "a fragment": lambda at: f"{at.own}mine#/../{at.name}2/secret",
    "a new line": lambda at: f"{at.own}mine\nx",
    "no path": lambda at: at.lake.store.endpoint,
    "nothing": lambda at: "",
}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST", "HEAD"])
async def test_nothing_outside_the_table_is_signed(
    owner: httpx.AsyncClient, plain_lake: Lake, method: str
) -> None:
    at = await prepare(owner, plain_lake)
    signed = {}

    for kind, make in URIS.items():
        answer = await sign(owner, at, method, make(at))
        if answer.status_code not in (400, 403) or "authorization" in answer.text.lower():
            signed[kind] = f"{answer.status_code} {answer.text[:300]}"

    assert signed == {}
    assert is_intact(at)


async def test_a_copy_from_another_table_is_not_signed(owner: httpx.AsyncClient, plain_lake: Lake) -> None:
    at = await prepare(owner, plain_lake)
    bucket = plain_lake.store.bucket

    for source in (f"/{bucket}/{at.victim_key}", f"{bucket}/{at.victim_key}", f"%2F{bucket}/{at.victim_key}"):
        answer = await sign(owner, at, "PUT", f"{at.own}stolen", headers={"x-amz-copy-source": [source]})
        assert answer.status_code in (400, 403), answer.text


async def test_no_header_is_overlooked_for_how_it_is_written(
    owner: httpx.AsyncClient, plain_lake: Lake
) -> None:
    at = await prepare(owner, plain_lake)
    theirs, mine = (f"/{plain_lake.store.bucket}/{key}" for key in (at.victim_key, at.own_key))
    spelled: list[dict[str, list[str]]] = [
        {"X-AMZ-COPY-SOURCE": [theirs]},
        {"x-amz-copy-source": [mine, theirs]},
        {"x-amz-copy-source": [mine], "X-Amz-Copy-Source": [theirs]},
        {"x-amz-copy-source": [f"{mine}, {theirs}"]},
        {"x-amz-copy-source": [f"{mine}\r\nx-amz-copy-source: {theirs}"]},
        {"x-amz-copy-source ": [theirs]},
        {"x-amz-copy-source:": [theirs]},
        {"x-amz-copy-source\n": [theirs]},
        {"x-amz-copy-source": [f"{mine}?versionId=1&x={theirs}"]},
        {"x-amz-copy-source": [theirs.replace("/", "%2F")]},
        {"x-amz-copy-source": []},
        {"x-amz-rename-source": [theirs]},
        {"x-amz-new-thing": ["1"]},
    ]
    signed = {}

    for headers in spelled:
        answer = await sign(owner, at, "PUT", f"{at.own}stolen", headers=headers)
        if answer.status_code not in (400, 403):
            signed[str(headers)] = answer.text[:200]
    for method in ("PATCH", "OPTIONS", "TRACE", "put", "GET "):
        answer = await sign(owner, at, method, f"{at.own}mine")
        if answer.status_code not in (400, 403):
            signed[method] = answer.text[:200]

    assert signed == {}


def deletion(*keys: str) -> str:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}</Delete>'


async def test_a_deletion_of_many_is_looked_at_key_by_key(owner: httpx.AsyncClient, any_lake: Lake) -> None:
    at = await prepare(owner, any_lake)
    uri = f"{at.bucket_url}?delete"
    bodies = {
        "another's": deletion(at.victim_key),
        "mixed": deletion(at.own_key, at.victim_key),
        "dots": deletion(f"{at.own_key}/../../{at.name}2/secret"),
        "entities": '<!DOCTYPE d [<!ENTITY k "x">]>' + deletion("&k;"),
        "no XML": "delete everything",
        "nothing": "",
        "a comment in a key": deletion(f"{at.own_key}<!-- -->/../{at.victim_key}"),
    }
    signed = {}

    for kind, body in bodies.items():
        answer = await sign(owner, at, "POST", uri, body=body)
        if answer.status_code not in (400, 403):
            signed[kind] = answer.text[:300]
    without = await sign(owner, at, "POST", uri)

    assert signed == {}
    assert without.status_code == 400
    assert "body" in without.text


async def test_another_list_than_the_one_that_was_signed_deletes_nothing(
    owner: httpx.AsyncClient, any_lake: Lake
) -> None:
    """Stores that do not hold a body against its signature are found out, and get no such signature."""
    at = await prepare(owner, any_lake)

    own = await sign(owner, at, "POST", f"{at.bucket_url}?delete", body=deletion(at.own_key))
    if own.status_code == 200:
        await send(own, "POST", deletion(at.victim_key).encode())
    else:
        assert own.status_code == 403
        assert not any_lake.store.has_sts, "there a signature reaches this table only"

    assert is_intact(at)


async def test_a_header_that_was_not_signed_copies_nothing(owner: httpx.AsyncClient, any_lake: Lake) -> None:
    at = await prepare(owner, any_lake)

    answer = await sign(owner, at, "PUT", f"{at.own}stolen")
    if answer.status_code == 200:
        signed = answer.json()
        headers = [(name, value) for name, values in signed["headers"].items() for value in values]
        source = ("x-amz-copy-source", f"/{any_lake.store.bucket}/{at.victim_key}")
        async with make_client(None) as http:
            await http.put(signed["uri"], headers=[*headers, source])

    listed = any_lake.as_owner().list_objects_v2(Bucket=any_lake.store.bucket, Prefix=at.own_key[:-4])
    for each in listed["Contents"]:
        found = any_lake.as_owner().get_object(Bucket=any_lake.store.bucket, Key=each["Key"])["Body"].read()
        assert found != b"secret"


async def test_who_may_read_has_no_change_signed(
    owner: httpx.AsyncClient, plain_lake: Lake, make_thief: MakeUser
) -> None:
    at = await prepare(owner, plain_lake)
    reader = await make_thief(plain_lake, Grant("TABLE_READ_DATA", ("ns",), at.name))

    read = await send(await sign(reader.http, at, "GET", f"{at.own}mine"), "GET")
    refused = [
        await sign(reader.http, at, "PUT", f"{at.own}mine"),
        await sign(reader.http, at, "DELETE", f"{at.own}mine"),
        await sign(reader.http, at, "POST", f"{at.own}mine?uploads"),
        await sign(reader.http, at, "POST", f"{at.bucket_url}?delete", body=deletion(at.own_key)),
    ]

    assert read.content == b"mine"
    assert [answer.status_code for answer in refused] == [403] * 4


async def test_signing_ends_with_the_right(
    owner: httpx.AsyncClient, plain_lake: Lake, make_thief: MakeUser
) -> None:
    at = await prepare(owner, plain_lake)
    grant = Grant("TABLE_READ_DATA", ("ns",), at.name)
    reader = await make_thief(plain_lake, grant)
    before = await sign(reader.http, at, "GET", f"{at.own}mine")

    await Admin(owner).revoke(plain_lake.name, reader.catalog_role, grant)
    after = await sign(reader.http, at, "GET", f"{at.own}mine")

    assert (before.status_code, after.status_code) == (200, 403)


async def test_a_signature_of_one_request_is_good_for_no_other(
    owner: httpx.AsyncClient, plain_lake: Lake
) -> None:
    at = await prepare(owner, plain_lake)
    signed = (await sign(owner, at, "GET", f"{at.own}mine")).json()
    headers = [(name, value) for name, values in signed["headers"].items() for value in values]

    async with make_client(None) as http:
        other = await http.get(f"{at.victim}secret", headers=headers)
        deleted = await http.delete(f"{at.own}mine", headers=headers)

    assert (other.status_code, deleted.status_code) == (403, 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": ["evil.example"]},
        {"x-amz-acl": ["public-read"]},
        {"x-amz-grant-read": ["uri=http://acs.amazonaws.com/groups/global/AllUsers"]},
        {"x-http-method-override": ["DELETE"]},
        {"x-amz-website-redirect-location": ["http://evil.example"]},
        {"x-amz-object-lock-mode": ["COMPLIANCE"]},
        {"x-amz-server-side-encryption-aws-kms-key-id": ["theirs"]},
        {"x-amz-security-token": ["theirs"]},
        {"authorization": ["theirs"]},
        {"x-amz-date": ["20200101T000000Z\nhost:evil"]},
    ],
)
async def test_headers_change_nothing_about_what_was_allowed(
    owner: httpx.AsyncClient, plain_lake: Lake, headers: dict[str, list[str]]
) -> None:
    at = await prepare(owner, plain_lake)

    answer = await sign(owner, at, "PUT", f"{at.own}mine", headers=headers)

    if answer.status_code == 200:
        # What is not part of the signature is the client's own to send, and means nothing to the store.
        given = {name.lower(): values for name, values in answer.json()["headers"].items()}
        [(name, values)] = headers.items()
        signed = given["authorization"][0].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        assert name not in signed or given[name] != values
    else:
        assert answer.status_code in (400, 403), answer.text
