"""Who may say where a catalog's files are and with which keys they are reached. Promises I60, I68.

The keys are the operator's. Whoever may change a catalog, or create one, must not have them used for another
place, shown to another server, or the server itself sent to where only it can go.
"""

import asyncio
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import MANAGEMENT, Admin
from tests.robustness.attacks.storage.lakes import VENDED, Lake, make_table
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


class _Trap(BaseHTTPRequestHandler):
    """Somebody's own server: whatever comes here was sent to the wrong place."""

    seen: list[str]

    def _note(self) -> None:
        self.seen.append(f"{self.command} {self.path} {self.headers.get('authorization', '')}")
        self.send_response(403)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _note

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Trap", (_Trap,), {"seen": seen}))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    thread.join()
    server.server_close()


def catalog_path(lake: Lake) -> str:
    return f"{MANAGEMENT}/catalogs/{lake.name}"


async def change(
    http: httpx.AsyncClient, lake: Lake, known: Json, storage: Json, **body: Any
) -> httpx.Response:
    """Change the storage of a catalog, as somebody who knows what it is."""
    wanted = {**known["storageConfigInfo"], **storage}
    version = known["entityVersion"]
    return await http.put(
        catalog_path(lake), json={"currentEntityVersion": version, "storageConfigInfo": wanted, **body}
    )


async def test_stored_keys_are_shown_to_no_other_server(
    owner: httpx.AsyncClient, any_lake: Lake, trap: tuple[str, list[str]]
) -> None:
    """Not even by who may do everything: who moves a storage gives its keys again."""
    url, seen = trap
    known = (await owner.get(catalog_path(any_lake))).json()

    for field in ("endpoint", "endpointInternal", "stsEndpoint"):
        answer = await change(owner, any_lake, known, {field: url})
        assert answer.status_code == 400, answer.text
    name = f"t{secrets.token_hex(4)}"
    assert (await make_table(owner, any_lake, name, headers=VENDED)).status_code == 200

    assert seen == []
    assert (await owner.get(catalog_path(any_lake))).json() == known


async def test_whoever_may_only_write_properties_gives_a_catalog_nothing_new(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser, trap: tuple[str, list[str]]
) -> None:
    url, seen = trap
    thief = await make_thief(lake, "CATALOG_MANAGE_METADATA", "CATALOG_MANAGE_CONTENT")
    known = (await owner.get(catalog_path(lake))).json()
    bucket = lake.store.bucket
    keys = {"accessKeyId": "theirs", "secretAccessKey": "theirs-and-long-enough"}
    attempts: dict[str, Json] = {
        "another bucket": {"allowedLocations": [lake.base, f"s3://{lake.store.other_bucket}/x"]},
        "beside": {"allowedLocations": [lake.base, f"{lake.base}2"]},
        "above": {"allowedLocations": [f"s3://{bucket}"]},
        "with keys of their own": {"endpoint": url, "stsEndpoint": url, **keys},
        "keys of their own": keys,
        "another name": {"storageName": "operators"},
        "no token service": {"stsUnavailable": not lake.store.storage().get("stsUnavailable", False)},
        "a key of another's": {"allowedKmsKeys": ["arn:aws:kms:us-east-1:1:key/x"]},
    }
    done = {}

    for kind, storage in attempts.items():
        answer = await change(thief.http, lake, known, storage)
        if answer.status_code not in (400, 403):
            done[kind] = f"{answer.status_code} {answer.text[:200]}"
    base = {"properties": {"default-base-location": f"s3://{lake.store.other_bucket}/x"}}
    moved = await change(thief.http, lake, known, {}, **base)

    assert done == {}
    assert moved.status_code in (400, 403), moved.text
    assert seen == []
    assert (await owner.get(catalog_path(lake))).json() == known


ELSEWHERE = (
    "http://169.254.169.254",
    "http://[fd00:ec2::254]",
    "http://2852039166",
    "http://metadata.google.internal",
    "file:///etc",
    "gopher://127.0.0.1:70",
    "http://user:password@127.0.0.1",
    "http://127.0.0.1/latest/meta-data",
    "http://127.0.0.1?x=",
    "http://127.0.0.1#",
    "http://127.0.0.1\n",
    "//127.0.0.1",
    "http://",
    "http://127.0.0.1:0",
    "http://127.0.0.1\r\nx: y",
    "unix:///run/docker.sock",
)


async def test_no_storage_sends_the_server_where_only_it_can_go(owner: httpx.AsyncClient, lake: Lake) -> None:
    taken = {}

    for url in ELSEWHERE:
        for field in ("endpoint", "endpointInternal", "stsEndpoint"):
            storage = {**lake.store.storage(), field: url}
            name, base = f"c{secrets.token_hex(4)}", f"s3://{lake.store.bucket}/{secrets.token_hex(6)}"
            body = {
                "type": "INTERNAL",
                "name": name,
                "properties": {"default-base-location": base},
                "storageConfigInfo": {"allowedLocations": [base], **storage},
            }
            answer = await owner.post(f"{MANAGEMENT}/catalogs", json={"catalog": body})
            if answer.status_code != 400:
                taken[url, field] = f"{answer.status_code} {answer.text[:200]}"

    assert taken == {}


async def test_of_catalogs_that_want_one_place_at_once_one_gets_it(
    owner: httpx.AsyncClient, lake: Lake
) -> None:
    """By creation and by growing into it, equal, above and below."""
    root = f"s3://{lake.store.bucket}/{secrets.token_hex(6)}"
    admin = Admin(owner)
    grown = [f"c{secrets.token_hex(4)}" for _ in range(3)]
    for name in grown:
        await admin.create_catalog(name, f"{root}-{name}", storage=lake.store.storage())

    async def create(place: str) -> httpx.Response:
        body = {
            "type": "INTERNAL",
            "name": f"c{secrets.token_hex(4)}",
            "properties": {"default-base-location": place},
            "storageConfigInfo": {"allowedLocations": [place], **lake.store.storage()},
        }
        return await owner.post(f"{MANAGEMENT}/catalogs", json={"catalog": body})

    async def grow(name: str, place: str) -> httpx.Response:
        path = f"{MANAGEMENT}/catalogs/{name}"
        known = (await owner.get(path)).json()
        storage = {**known["storageConfigInfo"], "allowedLocations": [f"{root}-{name}", place]}
        body = {"currentEntityVersion": known["entityVersion"], "storageConfigInfo": storage}
        return await owner.put(path, json=body)

    answers = await asyncio.gather(
        create(f"{root}/a"),
        create(f"{root}/a/b"),
        create(root),
        *(grow(name, place) for name, place in zip(grown, (root, f"{root}/a", f"{root}/a/b/c"), strict=True)),
    )

    got = [each for each in answers if each.is_success]
    assert len(got) == 1, [f"{each.status_code} {each.text[:150]}" for each in answers]
    assert {each.status_code for each in answers if not each.is_success} <= {400, 403, 409}


async def test_a_place_that_was_taken_from_a_catalog_is_not_anothers_at_once(
    owner: httpx.AsyncClient, lake: Lake
) -> None:
    """There may be files, and there are credentials."""
    name, root = f"c{secrets.token_hex(4)}", f"s3://{lake.store.bucket}/{secrets.token_hex(6)}"
    await Admin(owner).create_catalog(name, f"{root}/a", allowed=[f"{root}/b"], storage=lake.store.storage())
    known = (await owner.get(f"{MANAGEMENT}/catalogs/{name}")).json()
    storage = {**known["storageConfigInfo"], "allowedLocations": [f"{root}/a"]}
    body = {"currentEntityVersion": known["entityVersion"], "storageConfigInfo": storage}
    assert (await owner.put(f"{MANAGEMENT}/catalogs/{name}", json=body)).status_code == 200

    for place in (f"{root}/b", f"{root}/b/c", root):
        with pytest.raises(AssertionError):
            await Admin(owner).create_catalog(f"c{secrets.token_hex(4)}", place, storage=lake.store.storage())
