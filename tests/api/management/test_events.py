"""Events over HTTP: what was done and refused, by whom; and no secret in any of it."""

from typing import Any

import httpx
import pytest

from cynosure.persistence.objects import open_envelope
from cynosure.testing.admin import read_credential
from cynosure.testing.login import Credential
from tests.api.world import World

pytestmark = pytest.mark.anyio

EVENTS = "/cynosure/events"


async def read_all(root: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = (await root.get(EVENTS, params=query)).json()
        found += page["events"]
        if not page["hasMore"]:
            return found
        query["cursor"] = page["cursor"]


async def test_what_an_administrator_did_is_told_with_who_did_it(
    root: httpx.AsyncClient, world: World, lake: str
) -> None:
    """I43."""
    request = root.build_request(
        "POST",
        "/principals",
        json={"principal": {"name": "ann"}},
        headers={**root.headers, "x-request-id": "r-77"},
    )
    assert (await root.send(request)).status_code == 201

    events = await read_all(root, operation="create-principal", target="ann")

    (event,) = events
    assert (event["principal"], event["decision"], event["requestId"]) == ("root", "allowed", "r-77")
    assert event["roles"] == ["service_admin"]
    assert event["targets"][0]["change"] == "principal-created"
    assert (event["reference"], event["realm"]) == ("principals", "default")
    created = await read_all(root, operation="create-catalog", catalog=lake)
    assert created


async def test_a_denied_attempt_is_told_with_what_was_missing(
    root: httpx.AsyncClient, nobody: httpx.AsyncClient, lake: str
) -> None:
    """I44."""
    answer = await nobody.get(f"/catalogs/{lake}")
    assert answer.status_code == 403

    (event,) = await read_all(root, principal="nobody", decision="denied")

    assert (event["kind"], event["operation"], event["catalog"]) == ("denial", "load-catalog", lake)
    assert event["missing"] == ["CATALOG_READ_PROPERTIES"]
    assert event["requestId"] == answer.headers["x-request-id"]
    assert event["targets"] == [{"kind": "catalog", "name": lake}]


async def test_a_stranger_is_told_without_the_token(root: httpx.AsyncClient, world: World) -> None:
    """I44."""
    async with world.client("not-a-token-of-ours") as stranger:
        assert (await stranger.get("/principals")).status_code == 401

    page = (await root.get(EVENTS, params={"decision": "denied", "wait": 5})).json()

    (event,) = page["events"]
    assert (event["kind"], event["operation"]) == ("authentication-failure", "listPrincipals")
    assert "principal" not in event
    assert "not-a-token-of-ours" not in str(page)


async def test_only_who_manages_the_realm_reads_events_and_the_attempt_is_an_event(
    root: httpx.AsyncClient, nobody: httpx.AsyncClient
) -> None:
    answer = await nobody.get(EVENTS)
    assert answer.status_code == 403
    assert "SERVICE_MANAGE_ACCESS" in answer.json()["error"]["message"]

    (event,) = await read_all(root, operation="read-events")
    assert event["principal"] == "nobody"


async def test_pages_follow_each_other(root: httpx.AsyncClient) -> None:
    """I45."""
    for at in range(7):
        await root.post("/principals", json={"principal": {"name": f"p{at}"}})

    whole = await read_all(root)
    paged = await read_all(root, limit=2)

    assert paged == whole
    names = [each["targets"][0]["name"] for each in whole if each["operation"] == "create-principal"]
    assert names[-7:] == [f"p{at}" for at in range(7)]
    assert await read_all(root, since=whole[-1]["time"]) == whole[-1:]
    assert await read_all(root, until=whole[0]["time"]) == []


@pytest.mark.parametrize(
    "query",
    [
        {"cursor": "x"},
        {"limit": 0},
        {"limit": 1001},
        {"wait": -1},
        {"wait": 61},
        {"wait": "nan"},
        {"since": "yesterday"},
        {"since": "2026-01-01T00:00:00"},
        {"decision": "maybe"},
    ],
)
async def test_what_cannot_be_asked_is_refused(root: httpx.AsyncClient, query: dict[str, Any]) -> None:
    answer = await root.get(EVENTS, params=query)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == 400


async def test_no_secret_is_in_events_commits_or_logs(
    root: httpx.AsyncClient, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """I43: also of principals that were created, rotated and reset."""
    caplog.set_level("DEBUG")
    made = read_credential((await root.post("/principals", json={"principal": {"name": "svc"}})).json())
    reset = read_credential((await root.post("/principals/svc/reset", json={})).json())
    chosen = "chosen-secret-0123456789-0123456789"
    assert (await root.post("/principals/svc/reset", json={"clientSecret": chosen})).status_code == 200
    token = await world.fetch_token(Credential(made.client_id, chosen))
    async with world.client(token) as svc:
        rotated = read_credential((await svc.post("/principals/svc/rotate")).json())
        assert (await svc.get("/principals")).status_code == 403
    secrets = [made.secret, reset.secret, chosen, rotated.secret, world.root.secret]
    assert len(set(secrets)) == 5
    tokens = [token, root.headers["authorization"].removeprefix("Bearer ")]

    events = str(await read_all(root))
    stored = await _everything_stored(world)
    logged = "".join(str(vars(each)) for each in caplog.records)

    assert "rotate-credentials" in events
    assert "reset-credentials" in events
    for secret in [*secrets, *tokens]:
        assert secret not in events
        assert secret.encode() not in stored
        assert secret not in logged


async def _everything_stored(world: World) -> bytes:
    """All rows there are, decompressed."""
    backend = world.identities.persistence.backend
    found: list[bytes] = []
    after = None
    while heads := await backend.scan(after=after, limit=500):
        rows = await backend.fetch([head.key for head in heads])
        found += [open_envelope(row.key, row.blob).payload for row in rows if row is not None]
        after = heads[-1].key
    return b"\n".join(found)
