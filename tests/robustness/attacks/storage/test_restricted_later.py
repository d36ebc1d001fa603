"""Restrictions and time: they count from when they are attached, also for who was just given everything.

And what a table is made into afterwards, by whomever, does not take it out of reach. Promises I50 to I54.
"""

import asyncio
import json
import secrets
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.robustness.attacks.storage.lakes import SIGNED, VENDED, Lake, key_of, make_table, vend
from tests.robustness.attacks.storage.test_restricted import (
    Prey,
    assert_restricted,
    make_prey,
    policies_of,
    row_filter,
)
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


def is_given(answer: httpx.Response) -> bool:
    return "s3.access-key-id" in answer.text or "s3.remote-signing-enabled" in answer.text


async def test_a_restriction_counts_from_the_next_request_on(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Permission, credentials and answer were all in memory a moment before."""
    table, policy = f"t{secrets.token_hex(4)}", f"p{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, table)).status_code == 200
    mallory = await make_thief(lake, "CATALOG_MANAGE_CONTENT")
    path = lake.path(table)
    for _ in range(3):
        await vend(mallory.http, lake, table)
    body = {"name": policy, "type": "cynosure.row-filter", "content": row_filter(roles=[mallory.role])}
    assert (await owner.post(policies_of(lake), json=body)).status_code == 200
    target = {"target": {"type": "table-like", "path": ["ns", table]}}
    ended = asyncio.Event()
    late: list[httpx.Response] = []

    async def load_on() -> None:
        for _ in range(40):
            is_late = ended.is_set()
            answer = await mallory.http.get(path, headers=VENDED)
            if is_late:
                late.append(answer)

    async def attach() -> None:
        assert (await owner.put(f"{policies_of(lake)}/{policy}/mappings", json=target)).status_code == 204
        ended.set()

    await asyncio.gather(attach(), *(load_on() for _ in range(4)))
    late += [await mallory.http.get(path, headers=each) for each in (VENDED, SIGNED)]

    assert not any(is_given(each) for each in late)
    assert all(each.json()["read-restrictions"]["required-row-filter"] for each in late)
    assert (await mallory.http.get(f"{path}/credentials")).status_code == 403


def with_columns(*fields: Json) -> list[Json]:
    schema = {"type": "struct", "schema-id": 1, "fields": list(fields)}
    return [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]


ID = {"id": 1, "name": "id", "type": "long", "required": False}


async def test_no_change_of_columns_takes_a_filter_from_what_it_hides(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Also not by who may see everything, alone, in a transaction, or with a whole new metadata file."""
    prey = await make_prey(owner, lake, make_thief)
    before = (await owner.get(prey.path)).json()
    fields = before["metadata"]["schemas"][0]["fields"]
    [column] = [each for each in fields if each["name"] == "id"]
    rest = [each for each in fields if each["name"] != "id"]
    changes = {
        "renamed": with_columns({**column, "name": "hidden"}, *rest),
        "dropped": with_columns(*(rest or [{**ID, "id": 9, "name": "other"}])),
        "made anew": with_columns({**column, "id": 99, "required": False}, *rest),
        "swapped": with_columns(
            {**column, "name": "was-id"}, {**column, "id": 99, "name": "id", "required": False}, *rest
        ),
        "of another type": with_columns({**column, "type": "string"}, *rest),
    }
    identifier = {"namespace": ["ns"], "name": prey.table}
    done = {}

    for kind, updates in changes.items():
        change: Json = {"requirements": [], "updates": updates}
        metadata = {**before["metadata"], "last-column-id": 200}
        metadata["schemas"] = [*metadata["schemas"], updates[0]["schema"]]
        metadata["current-schema-id"] = 1
        bucket, key = key_of(f"{prey.location}/metadata/00009-{secrets.token_hex(8)}.metadata.json")
        lake.as_owner().put_object(Bucket=bucket, Key=key, Body=json.dumps(metadata).encode())
        overwrite = {"name": prey.table, "metadata-location": f"s3://{bucket}/{key}", "overwrite": True}
        answers = [
            await owner.post(prey.path, json=change),
            await owner.post(
                f"{lake.url}/transactions/commit",
                json={"table-changes": [{"identifier": identifier, **change}]},
            ),
            await owner.post(f"{lake.url}/namespaces/ns/register", json=overwrite),
        ]
        if not all(each.is_client_error and prey.policy in each.text for each in answers):
            done[kind] = [f"{each.status_code} {each.text[:150]}" for each in answers]

    assert done == {}
    assert (await owner.get(prey.path)).json()["metadata"] == before["metadata"]
    await assert_restricted(prey)


async def test_a_table_that_takes_a_name_is_not_the_one_that_had_it(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Made anew by the filtered one itself, it holds nothing of the other."""
    prey = await make_prey(owner, lake, make_thief)
    assert (await owner.delete(prey.path)).status_code == 204

    made = await make_table(prey.mallory.http, lake, prey.table, headers=VENDED)

    assert made.status_code == 200, made.text
    assert made.json()["metadata"]["location"] != prey.location
    assert all(not prey.location.startswith(each["prefix"]) for each in made.json()["storage-credentials"])


async def test_a_view_shows_its_text_and_nothing_of_a_filtered_table(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey, name = await make_prey(owner, lake, make_thief), f"v{secrets.token_hex(4)}"
    sql = {"type": "sql", "sql": f"SELECT * FROM ns.{prey.table}", "dialect": "spark"}
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["ns"],
        "representations": [sql],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": [ID]}
    body = {"name": name, "schema": schema, "view-version": version, "properties": {}}
    views = f"{lake.url}/namespaces/ns/views"

    inside = await prey.mallory.send("POST", views, {**body, "location": f"{prey.location}/view"})
    made = await prey.mallory.send("POST", views, body)
    loaded = await prey.mallory.http.get(f"{views}/{name}", headers=VENDED)
    through = await prey.mallory.http.get(
        f"{prey.path}/credentials", params={"referenced-by": f"ns\x1f{name}"}
    )

    assert (inside.status_code, made.status_code) == (403, 200), inside.text
    assert not is_given(loaded)
    assert through.status_code == 403
    await assert_restricted(prey)


async def test_what_is_told_of_a_filtered_table_counts_nothing(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """How many rows there are, and of which values, is what a filter hides."""
    prey = await make_prey(owner, lake, make_thief)
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": (await owner.get(prey.path)).json()["metadata"]["last-updated-ms"] + 1,
        "manifest-list": f"{prey.location}/metadata/snap-7.avro",
        "summary": {"operation": "append", "total-records": "4711", "partitions.id=4712": "added=4713"},
        "schema-id": 0,
    }
    statistics = {
        "snapshot-id": 7,
        "statistics-path": f"{prey.location}/metadata/4714.stats",
        "file-size-in-bytes": 4715,
        "file-footer-size-in-bytes": 4716,
        "blob-metadata": [
            {
                "type": "apache-datasketches-theta-v1",
                "snapshot-id": 7,
                "sequence-number": 1,
                "fields": [1],
                "properties": {"ndv": "4717"},
            }
        ],
    }
    reference = {"snapshot-id": 7, "type": "branch"}
    updates: list[Json] = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", **reference},
        {"action": "set-snapshot-ref", "ref-name": "side", **reference},
        {"action": "set-statistics", "statistics": statistics},
    ]
    changed = await owner.post(prey.path, json={"requirements": [], "updates": updates})
    assert changed.status_code == 200, changed.text

    for headers in ({}, VENDED):
        for query in ("", "?snapshots=all", "?snapshots=refs"):
            answer = await prey.mallory.http.get(prey.path + query, headers=headers)
            assert answer.json()["metadata"]["current-snapshot-id"] == 7
            assert not [number for number in range(4711, 4718) if f"{number}" in _told(answer, prey)]


def _told(answer: httpx.Response, prey: Prey) -> str:
    """What an answer says, without names that were made by chance."""
    text = answer.text
    for chance in (prey.location, prey.policy, prey.metadata_location, answer.json()["metadata-location"]):
        text = text.replace(chance, "")
    found = json.loads(text)
    for member in ("table-uuid", "last-updated-ms", "metadata-log", "snapshot-log"):
        found["metadata"].pop(member, None)
    for each in found["metadata"]["snapshots"]:
        each.pop("timestamp-ms")
    return json.dumps(found)


async def test_an_audience_is_not_left_by_role_names_of_ones_own(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """A role that is exempt by name counts when it is had, not when something else is called so."""
    table, policy = f"t{secrets.token_hex(4)}", f"p{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, table)).status_code == 200
    mallory = await make_thief(lake, "CATALOG_MANAGE_CONTENT")
    exempt = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), table))
    content = row_filter(**{"except-roles": [exempt.role]})
    body = {"name": policy, "type": "cynosure.row-filter", "content": content}
    assert (await owner.post(policies_of(lake), json=body)).status_code == 200
    target = {"target": {"type": "table-like", "path": ["ns", table]}}
    assert (await owner.put(f"{policies_of(lake)}/{policy}/mappings", json=target)).status_code == 204
    # A catalog role of the exempt principal role's name, which a manager of roles could make.
    path = f"/api/management/v1/catalogs/{lake.name}/catalog-roles"
    made = await owner.post(path, json={"catalogRole": {"name": exempt.role}})
    assert made.status_code in (200, 201), made.text
    given = await owner.put(
        f"/api/management/v1/principal-roles/{mallory.role}/catalog-roles/{lake.name}",
        json={"catalogRole": {"name": exempt.role}},
    )
    assert given.status_code in (200, 201, 204), given.text

    mine = await mallory.http.get(lake.path(table), headers=VENDED)
    theirs = await exempt.http.get(lake.path(table), headers=VENDED)
    # It restricts everyone else, the owner of this catalog of many tests among them.
    detached = await owner.post(f"{policies_of(lake)}/{policy}/mappings", json=target)
    assert detached.status_code == 204, detached.text

    assert mine.json()["read-restrictions"]["required-row-filter"]
    assert not is_given(mine)
    assert is_given(theirs)
    assert "read-restrictions" not in theirs.json()
