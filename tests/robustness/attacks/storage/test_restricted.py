"""A principal under a row filter, with every right to the catalog's content, looks for a way around it.

It finds none: no door gives it credentials, signatures or unrestricted metadata, and after each attempt the
filter is still in force. Promises I50 to I54.
"""

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from tests.robustness.attacks.storage.lakes import (
    SIGNED,
    VENDED,
    Lake,
    assert_denied,
    connect_with,
    key_of,
    make_table,
)
from tests.robustness.attacks.test_on_behalf_of import act_for
from tests.robustness.attacks.user import MakeUser, User

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Prey:
    """A filtered table, and who is filtered."""

    lake: Lake
    mallory: User
    table: str
    policy: str
    metadata_location: str
    location: str
    owner: httpx.AsyncClient

    @property
    def path(self) -> str:
        return self.lake.path(self.table)

    @property
    def policies(self) -> str:
        return policies_of(self.lake)

    def target(self, kind: str = "table-like") -> dict[str, Any]:
        path = {"table-like": ["ns", self.table], "namespace": ["ns"], "catalog": []}[kind]
        return {"target": {"type": kind, "path": path}}


def policies_of(lake: Lake) -> str:
    return f"{lake.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/policies"


def row_filter(**more: Any) -> str:
    return json.dumps({"enable": True, "filter": "id > 10", **more})


async def make_prey(owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser) -> Prey:
    table, policy = f"t{secrets.token_hex(4)}", f"p{secrets.token_hex(4)}"
    made = await make_table(owner, lake, table, location=f"{lake.base}/{table}")
    assert made.status_code == 200, made.text
    mallory = await make_thief(lake, "CATALOG_MANAGE_CONTENT")
    body = {"name": policy, "type": "cynosure.row-filter", "content": row_filter(roles=[mallory.role])}
    answer = await owner.post(policies_of(lake), json=body)
    assert answer.status_code == 200, answer.text
    metadata_location = made.json()["metadata-location"]
    prey = Prey(lake, mallory, table, policy, metadata_location, f"{lake.base}/{table}", owner)
    attached = await owner.put(f"{prey.policies}/{policy}/mappings", json=prey.target())
    assert attached.status_code == 204, attached.text
    return prey


async def assert_restricted(prey: Prey) -> None:
    """The filter is in force and nothing was given."""
    for headers in ({}, VENDED, SIGNED, {"X-Iceberg-Access-Delegation": "true"}):
        for query in ("", "?snapshots=refs"):
            answer = await prey.mallory.http.get(prey.path + query, headers=headers)
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert found["read-restrictions"]["required-row-filter"], answer.text
            assert "storage-credentials" not in found or not found["storage-credentials"]
            assert "s3.access-key-id" not in answer.text
            assert "s3.remote-signing-enabled" not in found["config"]


async def load_credentials(prey: Prey) -> list[httpx.Response]:
    return [await prey.mallory.http.get(f"{prey.path}/credentials")]


async def sign(prey: Prey) -> list[httpx.Response]:
    bucket, key = key_of(f"{prey.location}/data/x")
    uri = f"{prey.lake.store.endpoint}/{bucket}/{key}"
    return [
        await prey.mallory.send(
            "POST",
            f"{prey.path}/sign",
            {"region": prey.lake.store.region, "method": method, "uri": uri, "headers": {}},
        )
        for method in ("GET", "HEAD", "PUT", "DELETE")
    ]


async def change_policy(prey: Prey) -> list[httpx.Response]:
    own = f"{prey.policies}/{prey.policy}"
    send = prey.mallory.send
    changed = {"content": json.dumps({"enable": False}), "current-policy-version": 0}
    return [
        await send("PUT", own, changed),
        await send("DELETE", own),
        await send("DELETE", f"{own}?detach-all=true"),
        await send("POST", f"{own}/mappings", prey.target()),
        await send("PUT", f"{own}/mappings", prey.target("namespace")),
    ]


async def shadow_policy(prey: Prey) -> list[httpx.Response]:
    body = {"name": f"p{secrets.token_hex(4)}", "type": "cynosure.row-filter", "content": row_filter()}
    same = {**body, "name": prey.policy}
    return [
        await prey.mallory.send("POST", prey.policies, body),
        await prey.mallory.send("POST", prey.policies, same),
    ]


async def commit(prey: Prey) -> list[httpx.Response]:
    updates: list[dict[str, Any]] = [
        {"action": "set-properties", "updates": {"k": "v"}},
        {"action": "set-location", "location": f"{prey.lake.base}/elsewhere{secrets.token_hex(4)}"},
        {"action": "remove-properties", "removals": ["k"]},
    ]
    send = prey.mallory.send
    one = [await send("POST", prey.path, {"requirements": [], "updates": [each]}) for each in updates]
    change = {"identifier": {"namespace": ["ns"], "name": prey.table}, "requirements": [], "updates": updates}
    return [*one, await send("POST", f"{prey.lake.url}/transactions/commit", {"table-changes": [change]})]


async def move(prey: Prey) -> list[httpx.Response]:
    other = f"n{secrets.token_hex(4)}"
    made = await prey.mallory.send("POST", f"{prey.lake.url}/namespaces", {"namespace": [other]})
    assert made.status_code == 200
    source = {"namespace": ["ns"], "name": prey.table}
    return [
        await prey.mallory.send(
            "POST", f"{prey.lake.url}/tables/rename", {"source": source, "destination": destination}
        )
        for destination in (
            {"namespace": ["ns"], "name": f"{prey.table}x"},
            {"namespace": [other], "name": prey.table},
        )
    ]


async def remove(prey: Prey) -> list[httpx.Response]:
    return [
        await prey.mallory.send("DELETE", prey.path),
        await prey.mallory.send("DELETE", f"{prey.path}?purgeRequested=true"),
        await prey.mallory.send("POST", f"{prey.path}/unregister"),
        await prey.mallory.send("DELETE", f"{prey.lake.url}/namespaces/ns"),
    ]


async def register(prey: Prey) -> list[httpx.Response]:
    """The same files under another name, and over the same name."""
    path = f"{prey.lake.url}/namespaces/ns/register"
    body = {"name": f"r{secrets.token_hex(4)}", "metadata-location": prey.metadata_location}
    # A copy of the metadata at a place of the attacker's own, as its administrator could put it there.
    bucket, key = key_of(prey.metadata_location)
    store = prey.lake.as_owner()
    copied = f"{prey.lake.base}/copy{secrets.token_hex(4)}/metadata/v1.metadata.json"
    content = store.get_object(Bucket=bucket, Key=key)["Body"].read()
    store.put_object(Bucket=bucket, Key=key_of(copied)[1], Body=content)
    return [
        await prey.mallory.http.post(path, json=body, headers=VENDED),
        await prey.mallory.http.post(path, json={**body, "name": prey.table, "overwrite": True}),
        await prey.mallory.http.post(path, json={**body, "metadata-location": copied}, headers=VENDED),
    ]


async def build_on_it(prey: Prey) -> list[httpx.Response]:
    """Another table, staged or not, or a generic one, in the same place."""
    generic = f"{prey.lake.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/generic-tables"
    http, lake = prey.mallory.http, prey.lake
    name = f"x{secrets.token_hex(4)}"
    places = (prey.location, f"{prey.location}/data")
    return [
        *[await make_table(http, lake, name, location=each, headers=VENDED) for each in places],
        *[
            await make_table(http, lake, name, location=each, headers=VENDED, **{"stage-create": True})
            for each in places
        ],
        *[
            await http.post(
                generic,
                json={"name": name, "format": "delta", "base-location": each},
                headers={"Polaris-Generic-Table-Access-Delegation": "vended-credentials"},
            )
            for each in places
        ],
    ]


DOORS: dict[str, Callable[[Prey], Awaitable[list[httpx.Response]]]] = {
    "credentials": load_credentials,
    "sign": sign,
    "change the policy": change_policy,
    "shadow the policy": shadow_policy,
    "commit": commit,
    "move": move,
    "remove": remove,
    "register": register,
    "build on it": build_on_it,
}


@pytest.mark.parametrize("door", DOORS)
async def test_no_door_leads_around_a_row_filter(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser, door: str
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    before = (await owner.get(prey.path)).json()

    answers = await DOORS[door](prey)

    let_in = [
        f"{each.request.method} {each.request.url}: {each.text[:200]}" for each in answers if each.is_success
    ]
    assert let_in == []
    assert {each.status_code for each in answers} <= {400, 403, 409}, [each.text for each in answers]
    assert (await owner.get(prey.path)).json() == before
    await assert_restricted(prey)


async def test_a_refusal_names_the_policy(owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser) -> None:
    prey = await make_prey(owner, lake, make_thief)

    for answer in [*await load_credentials(prey), *await commit(prey)]:
        assert answer.status_code == 403
        assert prey.policy in answer.text


async def test_leaving_a_role_out_of_the_token_lifts_nothing(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    admin, mallory = Admin(owner), prey.mallory
    role = f"r{secrets.token_hex(4)}"
    await admin.create_role(role)
    await admin.assign_role(mallory.name, role)
    await admin.create_catalog_role(lake.name, role)
    await admin.assign_catalog_role(lake.name, role, role)
    await admin.grant(lake.name, role, Grant("TABLE_READ_DATA"))

    login = lake.server.login_as(mallory.credential, scope=f"PRINCIPAL_ROLE:{role}")
    async with lake.server.client(login) as http:
        answer = await http.get(prey.path, headers=VENDED)
        credentials = await http.get(f"{prey.path}/credentials")

    assert answer.json()["read-restrictions"]["required-row-filter"]
    assert "s3.access-key-id" not in answer.text
    assert credentials.status_code == 403


async def test_an_answer_from_before_the_filter_is_not_still_good(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    unfiltered = (await owner.get(prey.path, headers=VENDED)).headers["etag"]
    plain = (await owner.get(prey.path)).headers["etag"]

    for etag in (unfiltered, plain):
        answer = await prey.mallory.http.get(prey.path, headers={**VENDED, "If-None-Match": etag})
        assert answer.status_code == 200
        assert answer.json()["read-restrictions"]


async def test_everyone_else_reads_as_before(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    alice = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), prey.table))

    answer = await alice.http.get(prey.path, headers=VENDED)

    assert answer.status_code == 200
    assert "read-restrictions" not in answer.json()
    assert answer.json()["storage-credentials"]


async def test_a_trusted_engine_gets_the_filter_and_keys_to_read_with(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    engine = await make_thief(lake)
    trust = f"/cynosure/principals/{engine.name}/trusted-service"
    async with lake.server.stranger() as http:
        untrusted = await act_for(http, prey.mallory.login, engine.login)
        await Admin(owner).send("PUT", trust, {"trusted": True})
        given = await act_for(http, prey.mallory.login, engine.login)
        http.headers["Authorization"] = f"Bearer {given.json()['access_token']}"
        answer = await http.get(prey.path, headers=VENDED)
        refreshed = await http.get(f"{prey.path}/credentials")
        update = {"action": "set-properties", "updates": {"k": "v"}}
        written = await http.post(prey.path, json={"requirements": [], "updates": [update]})

    assert untrusted.status_code in (400, 401, 403)
    assert answer.json()["read-restrictions"]["required-row-filter"]
    assert refreshed.status_code == 200
    assert written.status_code == 403
    s3 = connect_with(lake.store, answer.json()["storage-credentials"][0]["config"])
    bucket, key = key_of(prey.metadata_location)
    s3.get_object(Bucket=bucket, Key=key)
    assert_denied(lambda: s3.put_object(Bucket=bucket, Key=f"{key}.x", Body=b"x"))
    # The user itself is where it was.
    await assert_restricted(prey)


async def test_a_filter_on_the_namespace_or_catalog_holds_as_well(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    for kind in ("namespace", "catalog"):
        prey = await make_prey(owner, lake, make_thief)
        mappings = f"{prey.policies}/{prey.policy}/mappings"
        assert (await owner.put(mappings, json=prey.target(kind))).status_code == 204
        assert (await owner.post(mappings, json=prey.target())).status_code == 204

        await assert_restricted(prey)
        for answer in [*await load_credentials(prey), *await commit(prey), *await move(prey)]:
            assert answer.status_code == 403, answer.text
        assert (await owner.post(mappings, json=prey.target(kind))).status_code == 204


async def test_a_mask_holds_as_a_filter_does(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    name = f"m{secrets.token_hex(4)}"
    content = json.dumps({"enable": True, "columns": {"id": "mask-to-default"}, "roles": [prey.mallory.role]})
    body = {"name": name, "type": "cynosure.column-mask", "content": content}
    assert (await owner.post(prey.policies, json=body)).status_code == 200
    assert (await owner.put(f"{prey.policies}/{name}/mappings", json=prey.target())).status_code == 204
    detached = await owner.post(f"{prey.policies}/{prey.policy}/mappings", json=prey.target())
    assert detached.status_code == 204

    answer = await prey.mallory.http.get(prey.path, headers=VENDED)

    [projection] = answer.json()["read-restrictions"]["required-column-projections"]
    assert projection == {"field-id": 1, "action": "mask-to-fixed-value"}
    assert "s3.access-key-id" not in answer.text
    assert (await prey.mallory.http.get(f"{prey.path}/credentials")).status_code == 403
