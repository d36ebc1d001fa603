"""A REST remote that lies, behind the whole API: what it says about itself and us reaches nobody."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.testing import lying_remote as lies
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.lying_remote import Heard, Lie, LyingRemote
from tests.api.world import World, open_world
from tests.catalog.external import table_metadata

pytestmark = pytest.mark.anyio

CATALOG = "http://test/api/catalog/v1/far"
TABLE = f"{CATALOG}/namespaces/ns/tables/orders"
SECRET = KNOWN.add("SecretThatARemoteTellsOn0000", kind="the secret of a connection")
TOKEN = KNOWN.add("TokenThatARemoteGaveUs000000", kind="the token of a remote")
EVIL = "evil.example"
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}
CONFIG = {
    "token": TOKEN,
    "uri": f"https://{EVIL}/",
    "io-impl": f"{EVIL}.FileIO",
    "s3.endpoint": f"https://{EVIL}/",
    "s3.signer.uri": f"https://{EVIL}/sign",
    "s3.signer": EVIL,
    "s3.access-key-id": f"{EVIL}-key",
    "py-io-impl": EVIL,
    "credential": SECRET,
    "oauth2-server-uri": f"https://{EVIL}/token",
}


class Far(NamedTuple):
    world: World
    root: httpx.AsyncClient
    liar: LyingRemote
    place: str


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    async with (
        LyingRemote() as liar,
        open_world(tmp_path) as world,
        await world.login(world.root) as root,
    ):
        liar.says("POST", "/oauth/tokens", lies.token(TOKEN))
        authentication = {"authenticationType": "OAUTH", "clientId": "near", "clientSecret": SECRET}
        connection = {
            "connectionType": "ICEBERG_REST",
            "uri": f"{liar.url}/api/catalog/",
            "remoteCatalogName": "there",
            "authenticationParameters": authentication,
        }
        wanted = world.catalog("far", type="EXTERNAL", connectionConfigInfo=connection)
        made = await root.post("/catalogs", json=wanted)
        assert made.status_code == 201, made.text
        grant = {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}}
        granted = await root.put("/catalogs/far/catalog-roles/catalog_admin/grants", json=grant)
        assert granted.status_code == 201, granted.text
        yield Far(world, root, liar, f"file://{tmp_path}/far/orders")


def answer_of(far: Far, **changes: Any) -> dict[str, Any]:
    return {
        "metadata-location": f"{far.place}/metadata/00001-x.metadata.json",
        "metadata": table_metadata(far.place),
        "config": CONFIG,
        "storage-credentials": [{"prefix": f"s3://{EVIL}", "config": CONFIG}],
        **changes,
    }


def echo(status: int, kind: str) -> Lie:
    """An error that says all that the remote knows of us."""

    async def tell(heard: Heard, writer: Any) -> None:
        message = f"{EVIL} {SECRET} {json.dumps(dict(heard.headers))}"
        await lies.refusal(status, kind, message)(heard, writer)

    return tell


def assert_nothing_told(*answers: httpx.Response) -> None:
    for each in answers:
        told = each.text + str(each.headers)
        for word in (SECRET, TOKEN, EVIL):
            assert word not in told, f"{each.request.method} {each.request.url}: {each.status_code}"


async def test_what_a_remote_says_to_its_clients_is_for_none_of_ours(far: Far) -> None:
    far.liar.says("GET", "/v1/config", lies.answer({"defaults": CONFIG, "overrides": CONFIG}))
    far.liar.says("GET", "/tables/orders", lies.answer(answer_of(far), etag='"1"'))

    loaded = await far.root.get(TABLE, headers=VENDED)
    config = await far.root.get("http://test/api/catalog/v1/config?warehouse=far")
    given = await far.root.get(f"{TABLE}/credentials")

    assert loaded.status_code == 200, loaded.text
    assert_nothing_told(loaded, config, given)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 500])
async def test_an_error_of_a_remote_is_told_in_our_own_words(far: Far, status: int) -> None:
    for method in ("GET", "POST", "DELETE"):
        for end in ("/tables/orders", "/namespaces", "/namespaces/ns", "/tables", "/tables/rename"):
            far.liar.says(method, end, echo(status, "NoSuchTableException"))
    ends = {"namespace": ["ns"], "name": "orders"}
    rename = {"source": ends, "destination": {**ends, "name": "other"}}

    answers = [
        await far.root.get(TABLE),
        await far.root.get(f"{CATALOG}/namespaces"),
        await far.root.get(f"{CATALOG}/namespaces/ns/tables"),
        await far.root.post(f"{CATALOG}/namespaces", json={"namespace": ["new"]}),
        await far.root.delete(TABLE),
        await far.root.post(f"{CATALOG}/tables/rename", json=rename),
        await far.root.get("/cynosure/catalogs/far/remote"),
        await far.root.post("/cynosure/catalogs/far/reconcile"),
        await far.root.get("/cynosure/events"),
        await far.root.get("/catalogs/far"),
    ]

    # 200: lists of a reconciliation that could not look, states, and events.
    assert_nothing_told(*answers)
    assert all(each.status_code >= 400 for each in answers[:6])


async def test_a_callers_token_and_headers_are_not_for_the_remote(far: Far) -> None:
    far.liar.says("GET", "/tables/orders", lies.answer(answer_of(far)))
    callers = {**VENDED, "cookie": "a=callers-cookie", "x-iceberg-other": "callers-header"}
    callers["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await far.root.get(TABLE, headers=callers)

    token = far.root.headers["authorization"].removeprefix("Bearer ")
    heard = "".join(f"{each.path} {each.headers} {each.body!r}" for each in far.liar.heard)

    assert far.liar.heard_at("/tables/orders")
    assert token not in heard
    assert "callers-" not in heard
    for each in far.liar.heard_at("/tables/orders"):
        assert each.headers["authorization"] == f"Bearer {TOKEN}"
        assert SECRET not in str(each.headers)


async def test_a_tag_that_stays_does_not_carry_rights_to_another_table(far: Far) -> None:
    far.liar.says("GET", "/tables/orders", lies.answer(answer_of(far), etag='"same"'))
    first = await far.root.get(TABLE)
    other = table_metadata(far.place, "v2", "11111111-2222-4333-8444-555555555555")
    far.liar.says("GET", "/tables/orders", lies.answer(answer_of(far, metadata=other), etag='"same"'))

    second = await far.root.get(TABLE)

    # Whose tag is the same has nothing new, whatever else comes with it: what was checked is shown.
    assert second.json()["metadata"] == first.json()["metadata"]


@pytest.mark.parametrize(
    "elsewhere",
    ["file:///etc", "s3://other-bucket/orders", "http://169.254.169.254/latest"],
)
async def test_a_metadata_file_elsewhere_is_neither_read_nor_shown(far: Far, elsewhere: str) -> None:
    location = f"{elsewhere}/metadata/1.metadata.json"
    far.liar.says("GET", "/tables/orders", lies.answer(answer_of(far, **{"metadata-location": location})))
    beside = await far.root.get(TABLE)
    moved = answer_of(far, metadata=table_metadata(elsewhere))
    far.liar.says("GET", "/tables/orders", lies.answer(moved))
    outside = await far.root.get(TABLE)

    assert (beside.status_code, outside.status_code) == (403, 403)
    assert elsewhere not in beside.text + outside.text


NAMES = [
    "",
    ".",
    "..",
    "a\x1fb",
    "a\nb",
    "\x00",
    "\x7f",
    "\ud800",
    "x" * 10_000,
    "a/b",
    "%2e%2e",
    "é",
    "\u202e",
]


async def test_names_of_any_kind_are_listed_only_if_they_can_be_asked_for(far: Far) -> None:
    namespaces = [[name] for name in NAMES]
    body = json.dumps({"namespaces": [*namespaces, []]}).encode()
    far.liar.says("GET", "/namespaces", lies.raw(body, content_type="application/json"))
    names = [{"namespace": ["ns"], "name": name} for name in NAMES]
    body = json.dumps({"identifiers": names}).encode()
    far.liar.says("GET", "/namespaces/ns/tables", lies.raw(body, content_type="application/json"))

    for path in ("/namespaces", "/namespaces?pageSize=5", "/namespaces/ns/tables"):
        answer = await far.root.get(f"{CATALOG}{path}")
        assert answer.status_code in (200, 502), answer.text
        if answer.status_code == 200:
            found = answer.json()
            listed = [each[-1] for each in found.get("namespaces", [])]
            listed += [each["name"] for each in found.get("identifiers", [])]
            assert set(listed) <= {"a/b", "%2e%2e", "é", "\u202e"}
