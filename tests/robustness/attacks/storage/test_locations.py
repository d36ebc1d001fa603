"""Locations that lead somewhere else: refused wherever a client can name one, before anything is given.

CVE-2026-42809 (a staged creation minted for any location) and CVE-2026-42812 (`write.metadata.path` was not
checked when a table was changed) are here. Promise I60.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
import pytest

from tests.robustness.attacks.storage.lakes import VENDED, Lake, make_table

pytestmark = pytest.mark.anyio

REFUSED = frozenset({400, 403})


@dataclass(frozen=True)
class Victim:
    """Another table, by what its attackers need to know."""

    name: str
    location: str


BAD: dict[str, Callable[[Lake, Victim], str]] = {
    "the victim's": lambda lake, victim: victim.location,
    "the victim's with a slash": lambda lake, victim: f"{victim.location}/",
    "the victim's in another scheme": lambda lake, victim: victim.location.replace("s3://", "s3a://"),
    "inside the victim's": lambda lake, victim: f"{victim.location}/data",
    "above the victim's": lambda lake, victim: lake.base,
    "the bucket": lambda lake, victim: f"s3://{lake.store.bucket}",
    "beside the catalog": lambda lake, victim: f"{lake.base}2/t",
    "dots": lambda lake, victim: f"{lake.base}/x/../{victim.name}",
    "encoded dots": lambda lake, victim: f"{lake.base}/x/%2e%2e/{victim.name}",
    "half encoded dots": lambda lake, victim: f"{lake.base}/x/.%2E/{victim.name}",
    "one dot": lambda lake, victim: f"{lake.base}/./{victim.name}",
    "two slashes": lambda lake, victim: f"{lake.base}//{victim.name}",
    "backslashes": lambda lake, victim: f"{lake.base}/x\\..\\{victim.name}",
    "a query": lambda lake, victim: f"{lake.base}/{victim.name}?x=1",
    "a fragment": lambda lake, victim: f"{lake.base}/{victim.name}#x",
    "a new line": lambda lake, victim: f"{lake.base}/x\n/{victim.name}",
    "another bucket": lambda lake, victim: "s3://another-bucket/x",
    "upper case in the bucket": lambda lake, victim: lake.base.replace(
        lake.store.bucket, lake.store.bucket.upper()
    ),
    "a user before the bucket": lambda lake, victim: lake.base.replace("s3://", "s3://user@"),
    "a local file": lambda lake, victim: "file:///etc",
    "another cloud": lambda lake, victim: lake.base.replace("s3://", "gs://"),
    "an unknown scheme": lambda lake, victim: lake.base.replace("s3://", "http://"),
}
PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


async def make_victim(owner: httpx.AsyncClient, lake: Lake) -> Victim:
    name = f"victim{secrets.token_hex(4)}"
    location = f"{lake.base}/{name}"
    assert (await make_table(owner, lake, name, location=location)).status_code == 200
    return Victim(name, location)


async def make_own(owner: httpx.AsyncClient, lake: Lake) -> str:
    name = f"own{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, name)).status_code == 200
    return name


async def create(http: httpx.AsyncClient, lake: Lake, location: str) -> httpx.Response:
    return await make_table(http, lake, f"t{secrets.token_hex(4)}", location=location, headers=VENDED)


async def stage(http: httpx.AsyncClient, lake: Lake, location: str) -> httpx.Response:
    name = f"t{secrets.token_hex(4)}"
    return await make_table(http, lake, name, location=location, headers=VENDED, **{"stage-create": True})


async def create_with_path(http: httpx.AsyncClient, lake: Lake, location: str) -> httpx.Response:
    name = f"t{secrets.token_hex(4)}"
    return await make_table(http, lake, name, properties={PATHS[0]: location}, headers=VENDED)


async def move(http: httpx.AsyncClient, lake: Lake, location: str) -> httpx.Response:
    name = await make_own(http, lake)
    change = {"requirements": [], "updates": [{"action": "set-location", "location": location}]}
    return await http.post(lake.path(name), json=change)


async def commit_creation(http: httpx.AsyncClient, lake: Lake, location: str) -> httpx.Response:
    staged = await make_table(http, lake, f"t{secrets.token_hex(4)}", **{"stage-create": True})
    metadata = staged.json()["metadata"]
    change = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": location},
        ],
    }
    return await http.post(lake.path(f"t{secrets.token_hex(4)}"), json=change)


async def use_generic_table(http: httpx.AsyncClient, lake: Lake, location: str) -> httpx.Response:
    return await http.post(
        f"{lake.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/generic-tables",
        json={"name": f"g{secrets.token_hex(4)}", "format": "delta", "base-location": location},
        headers={"Polaris-Generic-Table-Access-Delegation": "vended-credentials"},
    )


Door = Callable[[httpx.AsyncClient, Lake, str], Awaitable[httpx.Response]]
DOORS: dict[str, Door] = {
    "create": create,
    "stage": stage,
    "create with a data path": create_with_path,
    "set-location": move,
    "commit of a creation": commit_creation,
    "generic table": use_generic_table,
}


@pytest.mark.parametrize("door", DOORS)
async def test_no_location_that_leads_elsewhere_is_taken(
    owner: httpx.AsyncClient, lake: Lake, door: str
) -> None:
    victim = await make_victim(owner, lake)
    taken = {}

    for name, make in BAD.items():
        answer = await DOORS[door](owner, lake, make(lake, victim))
        if answer.status_code not in REFUSED or "s3.access-key-id" in answer.text:
            taken[name] = answer.text[:300]

    assert taken == {}


@pytest.mark.parametrize("name", PATHS)
async def test_no_property_sends_files_elsewhere_in_a_commit(
    owner: httpx.AsyncClient, lake: Lake, name: str
) -> None:
    victim = await make_victim(owner, lake)
    own = await make_own(owner, lake)
    before = (await owner.get(lake.path(own))).json()
    taken = {}

    for kind, make in BAD.items():
        update = {"action": "set-properties", "updates": {name: make(lake, victim)}}
        answer = await owner.post(lake.path(own), json={"requirements": [], "updates": [update]})
        if answer.status_code not in REFUSED:
            taken[kind] = answer.text[:300]

    assert taken == {}
    assert (await owner.get(lake.path(own))).json() == before


async def test_a_namespaces_location_does_not_lead_into_a_table(owner: httpx.AsyncClient, lake: Lake) -> None:
    victim = await make_victim(owner, lake)

    for location in (victim.location, f"{victim.location}/x", f"{lake.base}/../x", "s3://another-bucket/x"):
        body = {"namespace": [f"n{secrets.token_hex(4)}"], "properties": {"location": location}}
        answer = await owner.post(f"{lake.url}/namespaces", json=body)
        assert answer.status_code in REFUSED, location


async def test_two_tables_that_begin_alike_are_two_places(owner: httpx.AsyncClient, lake: Lake) -> None:
    victim = await make_victim(owner, lake)

    answer = await make_table(owner, lake, f"{victim.name}x", location=f"{victim.location}2", headers=VENDED)

    assert answer.status_code == 200
    [credential] = answer.json()["storage-credentials"]
    assert credential["prefix"] == f"{victim.location}2"
