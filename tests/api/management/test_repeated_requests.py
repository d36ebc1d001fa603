"""Every change of the management API over HTTP, sent twice under one Idempotency-Key.

What operations do with keys is tested in `tests/auth` and `tests/catalog`. Here it is that
handlers and router pass them on, and that nothing around them tells a secret.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.auth.caller import operator_caller
from cynosure.auth.entities import ROOT
from cynosure.auth.errors import PrincipalExists
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.persistence.objects import open_envelope
from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.known_secrets import KNOWN
from cynosure.testing.login import Credential
from cynosure.testing.small_keys import key_of, with_key
from tests.api.world import World

pytestmark = pytest.mark.anyio

KEY = "7d1c4be09f2a4a53b8e6c01d92f37a6b"
REPLAYED = "idempotency-replayed"


class Call(NamedTuple):
    """A request. `{folder}` in a body stands for the directory of the world."""

    method: str
    path: str
    body: Any = None


PRINCIPAL = Call("POST", "/principals", {"principal": {"name": "etl"}})
ROLE = Call("POST", "/principal-roles", {"principalRole": {"name": "team"}})
ASSIGN = Call("PUT", "/principals/etl/principal-roles", {"principalRole": {"name": "team"}})
READER = Call("POST", "/catalogs/lake/catalog-roles", {"catalogRole": {"name": "reader"}})
GIVE = Call("PUT", "/principal-roles/team/catalog-roles/lake", {"catalogRole": {"name": "reader"}})
GRANT = Call(
    "PUT",
    "/catalogs/lake/catalog-roles/reader/grants",
    {"grant": {"type": "catalog", "privilege": "TABLE_LIST"}},
)
UPDATE = {"currentEntityVersion": 1, "properties": {"a": "b"}}

CALLS: dict[str, tuple[Sequence[Call], Call]] = {
    "createCatalog": ((), Call("POST", "/catalogs", "new")),
    "updateCatalog": (
        (Call("POST", "/catalogs", "new"),),
        Call(
            "PUT",
            "/catalogs/new",
            {
                "currentEntityVersion": 1,
                "properties": {"default-base-location": "file://{folder}/new", "a": "b"},
            },
        ),
    ),
    "deleteCatalog": ((Call("POST", "/catalogs", "new"),), Call("DELETE", "/catalogs/new")),
    "dropCatalogCascade": (
        (Call("POST", "/catalogs", "new"),),
        Call("POST", "/catalogs/new/drop", {"cascade": True}),
    ),
    "createPrincipal": ((), PRINCIPAL),
    "updatePrincipal": ((PRINCIPAL,), Call("PUT", "/principals/etl", UPDATE)),
    "deletePrincipal": ((PRINCIPAL,), Call("DELETE", "/principals/etl")),
    "rotateCredentials": ((), Call("POST", f"/principals/{ROOT}/rotate")),
    "resetCredentials": ((PRINCIPAL,), Call("POST", "/principals/etl/reset")),
    "setTrustedService": (
        (PRINCIPAL,),
        Call("PUT", "/cynosure/principals/etl/trusted-service", {"trusted": True}),
    ),
    "createPrincipalRole": ((), ROLE),
    "updatePrincipalRole": ((ROLE,), Call("PUT", "/principal-roles/team", UPDATE)),
    "deletePrincipalRole": ((ROLE,), Call("DELETE", "/principal-roles/team")),
    "assignPrincipalRole": ((PRINCIPAL, ROLE), ASSIGN),
    "revokePrincipalRole": (
        (PRINCIPAL, ROLE, ASSIGN),
        Call("DELETE", "/principals/etl/principal-roles/team"),
    ),
    "createCatalogRole": ((), READER),
    "updateCatalogRole": ((READER,), Call("PUT", "/catalogs/lake/catalog-roles/reader", UPDATE)),
    "deleteCatalogRole": ((READER,), Call("DELETE", "/catalogs/lake/catalog-roles/reader")),
    "assignCatalogRoleToPrincipalRole": ((ROLE, READER), GIVE),
    "revokeCatalogRoleFromPrincipalRole": (
        (ROLE, READER, GIVE),
        Call("DELETE", "/principal-roles/team/catalog-roles/lake/reader"),
    ),
    "addGrantToCatalogRole": ((READER,), GRANT),
    "revokeGrantFromCatalogRole": ((READER, GRANT), GRANT._replace(method="POST")),
}
SHOWING = ("createPrincipal", "rotateCredentials", "resetCredentials")


async def send(world: World, client: httpx.AsyncClient, call: Call, key: str | None = None) -> httpx.Response:
    body = world.catalog(call.body) if isinstance(call.body, str) else call.body
    headers = {} if key is None else {"idempotency-key": key}
    if body is None:
        return await client.request(call.method, call.path, headers=headers)
    return await client.request(call.method, call.path, json=filled(body, world), headers=headers)


def filled(value: Any, world: World) -> Any:
    if isinstance(value, dict):
        return {name: filled(each, world) for name, each in value.items()}
    return value.replace("{folder}", str(world.folder)) if isinstance(value, str) else value


async def given(world: World, root: httpx.AsyncClient, name: str) -> Call:
    calls, call = CALLS[name]
    for each in calls:
        answer = await send(world, root, each)
        assert answer.is_success, answer.text
        remember(answer)
    return call


def remember(answer: httpx.Response) -> None:
    """So that the end of the run looks for it in all that was written."""
    if answer.content and "credentials" in answer.json():
        shown = answer.json()["credentials"]
        KNOWN.add(shown["clientSecret"], client_id=shown["clientId"])


async def test_every_change_of_the_management_api_is_in_these_tests(world: World) -> None:
    routes = [route for route in world.service.routes if route.path.startswith(MANAGEMENT)]
    assert set(CALLS) == {route.operation_id for route in routes if route.is_keyed}


@pytest.mark.parametrize("name", CALLS)
async def test_a_change_that_is_sent_twice_is_made_once_and_answered_twice(
    name: str, world: World, root: httpx.AsyncClient, lake: str
) -> None:
    """I73, I74."""
    call = await given(world, root, name)

    first = await send(world, root, call, KEY)
    heads = await heads_of(world)
    again = await send(world, root, call, KEY)
    remember(first)

    assert first.is_success, first.text
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert (first.headers.get(REPLAYED), again.headers.get(REPLAYED)) == (None, "true")
    assert await heads_of(world) == heads


@pytest.mark.parametrize("name", [name for name, (before, _) in CALLS.items() if before])
async def test_a_change_that_was_refused_stays_refused_under_its_key_though_it_could_be_made_now(
    name: str, world: World, root: httpx.AsyncClient, lake: str
) -> None:
    """I74, I77."""
    first = await send(world, root, CALLS[name][1], KEY)
    call = await given(world, root, name)
    heads = await heads_of(world)

    again = await send(world, root, call, KEY)

    assert first.status_code == 404, first.text
    assert (again.status_code, again.json()) == (404, first.json())
    assert again.headers.get(REPLAYED) == "true"
    assert await heads_of(world) == heads
    assert (await send(world, root, call, "another-key")).is_success


@pytest.mark.parametrize("is_done", [True, False], ids=["done", "refused"])
@pytest.mark.parametrize(
    "name", [name for name in CALLS if name not in ("resetCredentials", "rotateCredentials")]
)
async def test_who_lost_the_right_is_refused_and_not_answered_again(
    name: str, is_done: bool, world: World, root: httpx.AsyncClient, lake: str, nobody: httpx.AsyncClient
) -> None:
    """I76. Credentials are reset by root only, and rotated by their owners, who cannot lose that."""
    admin_role = "/principals/nobody/principal-roles"
    await root.put(admin_role, json={"principalRole": {"name": "service_admin"}})
    call = CALLS[name][1] if not is_done and CALLS[name][0] else await given(world, root, name)
    if not is_done and not CALLS[name][0]:
        assert (await send(world, root, call)).is_success  # So that its name is taken.
    first = await send(world, nobody, call, KEY)
    assert first.is_success is is_done, first.text
    if not is_done and CALLS[name][0]:
        await given(world, root, name)
    await root.delete(f"{admin_role}/service_admin")

    again = await send(world, nobody, call, KEY)

    assert again.status_code == 403, again.text
    assert REPLAYED not in again.headers
    denied = await root.get("/cynosure/events", params={"decision": "denied", "principal": "nobody"})
    assert len(denied.json()["events"]) == 1


@pytest.mark.parametrize("name", SHOWING)
async def test_the_secret_of_a_repeated_answer_is_good(
    name: str, world: World, root: httpx.AsyncClient, lake: str
) -> None:
    call = await given(world, root, name)
    remember(await send(world, root, call, KEY))

    shown = (await send(world, root, call, KEY)).json()["credentials"]

    assert await world.fetch_token(Credential(shown["clientId"], shown["clientSecret"]))


@pytest.mark.parametrize("name", SHOWING)
async def test_neither_key_nor_secret_is_in_the_store_in_logs_or_in_events(
    name: str, world: World, root: httpx.AsyncClient, lake: str, caplog: pytest.LogCaptureFixture
) -> None:
    """I78."""
    caplog.set_level(logging.DEBUG)
    call = await given(world, root, name)
    shown = (await send(world, root, call, KEY)).json()["credentials"]
    await send(world, root, call, KEY)
    await send(world, root, call._replace(body={"another": "payload"}), KEY)
    KNOWN.add(KEY, kind="an Idempotency-Key")
    KNOWN.add(shown["clientSecret"], client_id=shown["clientId"])

    events = await root.get("/cynosure/events", params={"limit": 100})
    written = {
        "events": events.content,
        "logs": caplog.text.encode(),
        "store": await read_store(world),
    }

    assert events.json()["events"], "there is something to be searched"
    leaks = [leak for where, data in written.items() for leak in KNOWN.search_bytes(data, where)]
    assert [leak for leak in leaks if leak.what != "a signed token"] == []


async def test_a_refusal_that_is_kept_under_its_key_is_no_event_and_holds_up_none(
    world: World, root: httpx.AsyncClient
) -> None:
    """What was refused was not done; and it was told when it was refused."""
    remember(await send(world, root, PRINCIPAL))
    repeated = with_key(operator_caller("somebody"), is_repeat=True)
    with pytest.raises(PrincipalExists):
        await create_principal(world.identities, repeated, NewPrincipal("etl"))
    assert key_of(repeated).is_committed
    only_refused = (await root.get("/cynosure/events", params={"limit": 1000})).json()["events"]
    await send(world, root, ROLE)

    events = (await root.get("/cynosure/events", params={"limit": 1000})).json()["events"]

    assert "create-principal" in {each["operation"] for each in only_refused}
    assert "create-principal-role" in {each["operation"] for each in events}
    assert "somebody" not in {each["principal"] for each in events}


async def heads_of(world: World) -> dict[Any, int]:
    """Of all but the audit, which is collected every few seconds, whatever is asked."""
    refs = await world.identities.persistence.backend.list_refs()
    return {ref.key: ref.head for ref in refs if ref.key.name != "audit"}


async def read_store(world: World) -> bytes:
    backend = world.identities.persistence.backend
    heads = await backend.scan(after=None, limit=100_000)
    rows = [row for row in await backend.fetch([each.key for each in heads]) if row is not None]
    return b"\n".join(row.blob + b"\n" + open_envelope(row.key, row.blob).payload for row in rows)
