"""Tables that were renamed, dropped or made anew: a name gives nothing of what it does not stand for now.

And what is left of a table when it is gone is nobody's to pick up. Promises I55, I60, I62.
"""

import asyncio
import secrets
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.robustness.attacks.storage.lakes import (
    SIGNED,
    VENDED,
    Lake,
    assert_denied,
    connect_with,
    key_of,
    make_table,
    vend,
)
from tests.robustness.attacks.storage.test_restricted import Prey, assert_restricted, make_prey
from tests.robustness.attacks.user import MakeUser, User

pytestmark = pytest.mark.anyio

EMPTY = sha256(b"").hexdigest()
CONTENT = "CATALOG_MANAGE_CONTENT"


def fresh(word: str = "t") -> str:
    return f"{word}{secrets.token_hex(4)}"


def dropped_of(lake: Lake) -> str:
    return f"{lake.url.replace('/v1/', '/cynosure/v1/')}/dropped"


async def rename(
    http: httpx.AsyncClient, lake: Lake, before: str, after: str, to: str = "ns"
) -> httpx.Response:
    body = {
        "source": {"namespace": ["ns"], "name": before},
        "destination": {"namespace": [to], "name": after},
    }
    return await http.post(f"{lake.url}/tables/rename", json=body)


async def sign(http: httpx.AsyncClient, lake: Lake, table: str, location: str) -> httpx.Response:
    bucket, key = key_of(f"{location}/data/x")
    uri = f"{lake.store.endpoint}/{bucket}/{key}"
    headers = {"x-amz-content-sha256": [EMPTY]}
    body = {"region": lake.store.region, "method": "GET", "uri": uri, "headers": headers}
    return await http.post(f"{lake.path(table)}/sign", json=body)


async def ask_everywhere(user: User, lake: Lake, name: str, location: str) -> list[httpx.Response]:
    """All ways to the files of a table of this name that is, or was, at this location."""
    return [
        await user.http.get(lake.path(name), headers=VENDED),
        await user.http.get(lake.path(name), headers=SIGNED),
        await user.http.get(f"{lake.path(name)}/credentials"),
        await sign(user.http, lake, name, location),
    ]


async def test_a_name_that_another_table_has_now_gives_nothing_of_it(
    owner: httpx.AsyncClient, any_lake: Lake, make_thief: MakeUser
) -> None:
    """Rights on a table follow it, not its name."""
    lake = any_lake
    for end in ("renamed", "dropped"):
        name = fresh()
        first = (await make_table(owner, lake, name)).json()["metadata"]["location"]
        reader = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), name))
        assert (await reader.http.get(lake.path(name), headers=VENDED)).status_code == 200
        if end == "renamed":
            moved = fresh("moved")
            assert (await rename(owner, lake, name, moved)).status_code == 204
            assert (await reader.http.get(lake.path(moved), headers=VENDED)).status_code == 200
        else:
            assert (await owner.delete(lake.path(name))).status_code == 204
        gone = await ask_everywhere(reader, lake, name, first)
        second = (await make_table(owner, lake, name)).json()["metadata"]["location"]

        answers = [
            *await ask_everywhere(reader, lake, name, second),
            *await ask_everywhere(reader, lake, name, first),
        ]

        assert {each.status_code for each in gone} <= {403, 404}, [each.text for each in gone]
        assert {each.status_code for each in answers} == {403}, [each.text for each in answers]


async def test_credentials_for_a_name_are_those_of_the_table_that_has_it(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Whoever may read all of a namespace is given the new table's, and not what is in memory of the old."""
    name = fresh()
    made = (await make_table(owner, lake, name)).json()
    reader = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",)))
    before = await vend(reader.http, lake, name)
    assert (await owner.delete(lake.path(name))).status_code == 204
    again = (await make_table(owner, lake, name)).json()

    after = await vend(reader.http, lake, name)

    assert before["s3.access-key-id"] != after["s3.access-key-id"]
    s3 = connect_with(lake.store, after)
    bucket, key = key_of(again["metadata-location"])
    s3.get_object(Bucket=bucket, Key=key)
    assert_denied(lambda: s3.get_object(Bucket=bucket, Key=key_of(made["metadata-location"])[1]))


async def pick_up(user: User, lake: Lake, location: str) -> list[httpx.Response]:
    """Every way to make this place that of a table of one's own."""
    http, staged = user.http, {"stage-create": True}
    own, properties = fresh("own"), {"write.data.path": f"{location}/data"}
    assert (await make_table(http, lake, own)).status_code == 200
    generic = f"{lake.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/generic-tables"
    places = (location, f"{location}/", f"{location}/data", location.replace("s3://", "s3a://"))
    answers = [
        answer
        for place in places
        for answer in (
            await make_table(http, lake, fresh(), location=place, headers=VENDED),
            await make_table(http, lake, fresh(), location=place, headers=VENDED, **staged),
            await http.post(
                generic,
                json={"name": fresh("g"), "format": "delta", "base-location": place},
                headers={"Polaris-Generic-Table-Access-Delegation": "vended-credentials"},
            ),
        )
    ]
    answers.append(await make_table(http, lake, fresh(), properties=properties, headers=VENDED))
    updates: list[dict[str, Any]] = [
        {"action": "set-location", "location": location},
        {"action": "set-properties", "updates": properties},
    ]
    answers += [await http.post(lake.path(own), json={"requirements": [], "updates": [e]}) for e in updates]
    return answers


async def test_the_place_of_a_dropped_table_is_nobody_elses(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name = fresh()
    made = (await make_table(owner, lake, name, location=f"{lake.base}/{name}")).json()
    thief = await make_thief(lake, CONTENT)
    assert (await owner.delete(lake.path(name))).status_code == 204

    answers = await pick_up(thief, lake, made["metadata"]["location"])
    body = {"name": fresh(), "metadata-location": made["metadata-location"]}
    answers.append(await thief.http.post(f"{lake.url}/namespaces/ns/register", json=body, headers=VENDED))

    assert {each.status_code for each in answers} == {403}, [e.text for e in answers if e.status_code != 403]
    assert all("s3.access-key-id" not in each.text for each in answers)


async def drop_prey(prey: Prey) -> str:
    """Have its owner drop it; the drop's id."""
    assert (await prey.owner.delete(prey.path)).status_code == 204
    listed = await prey.owner.get(dropped_of(prey.lake), params={"pageSize": 1000})
    [found] = [each["id"] for each in listed.json()["dropped"] if each.get("name") == prey.table]
    return str(found)


async def test_what_was_filtered_is_not_picked_up_when_it_is_dropped(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    await drop_prey(prey)

    answers = await pick_up(prey.mallory, lake, prey.location)
    body = {"name": fresh(), "metadata-location": prey.metadata_location}
    path = f"{lake.url}/namespaces/ns/register"
    answers.append(await prey.mallory.http.post(path, json=body, headers=VENDED))

    assert {each.status_code for each in answers} == {403}, [e.text for e in answers if e.status_code != 403]


async def test_who_may_only_drop_a_table_gets_none_of_its_files_by_that(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """The right to drop is not one to read, by whichever way a table ends."""
    other = fresh("n")
    assert (await owner.post(f"{lake.url}/namespaces", json={"namespace": [other]})).status_code == 200
    own = [Grant(each, (other,)) for each in ("TABLE_CREATE", "TABLE_WRITE_DATA")]
    drop = [Grant(each, ("ns",)) for each in ("TABLE_DROP", "TABLE_READ_PROPERTIES")]
    thief = await make_thief(lake, *own, *drop)

    for method, suffix in (("DELETE", ""), ("POST", "/unregister")):
        name = fresh()
        made = (await make_table(owner, lake, name)).json()
        location = made["metadata"]["location"]
        assert (await thief.send(method, lake.path(name) + suffix)).is_success
        body = {"name": name, "metadata-location": made["metadata-location"]}
        answers = [
            await make_table(thief.http, lake, fresh(), namespace=other, location=location, headers=VENDED),
            await make_table(
                thief.http,
                lake,
                fresh(),
                namespace=other,
                location=location,
                headers=VENDED,
                **{"stage-create": True},
            ),
            await thief.http.post(f"{lake.url}/namespaces/{other}/register", json=body, headers=VENDED),
        ]

        assert {each.status_code for each in answers} == {403}, [each.text for each in answers]
        assert all("s3.access-key-id" not in each.text for each in answers)


async def test_what_was_filtered_is_not_picked_up_when_it_is_unregistered(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    assert (await owner.post(f"{prey.path}/unregister")).status_code == 200

    answers = await pick_up(prey.mallory, lake, prey.location)

    assert {each.status_code for each in answers} == {403}, [e.text for e in answers if e.status_code != 403]


async def test_who_sees_everything_does_not_lift_a_filter_by_making_the_table_anew(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """To detach a filter takes more than the right to drop a table and to register its files again."""
    for method, suffix in (("DELETE", ""), ("POST", "/unregister")):
        prey = await make_prey(owner, lake, make_thief)
        accomplice = await make_thief(lake, CONTENT)
        last = (await owner.get(prey.path)).json()["metadata-location"]
        assert (await accomplice.send(method, prey.path + suffix)).is_success

        body = {"name": prey.table, "metadata-location": last}
        answers = [
            await accomplice.http.post(f"{lake.url}/namespaces/ns/register", json=body, headers=VENDED),
            *await pick_up(accomplice, lake, prey.location),
        ]

        assert {each.status_code for each in answers} == {403}, [each.text for each in answers]


async def test_a_filter_comes_back_with_its_table_under_whatever_name(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    drop_id = await drop_prey(prey)
    path, name = f"{dropped_of(lake)}/{quote(drop_id)}/restore", fresh("restored")

    refused = await prey.mallory.http.post(path, json={"namespace": ["ns"], "name": name})
    restored = await owner.post(path, json={"namespace": ["ns"], "name": name})

    assert refused.status_code == 403, refused.text
    assert restored.status_code == 200, restored.text
    again = Prey(lake, prey.mallory, name, prey.policy, prey.metadata_location, prey.location, owner)
    await assert_restricted(again)
    assert (await prey.mallory.http.get(f"{again.path}/credentials")).status_code == 403


async def test_a_filter_goes_with_its_table_into_another_namespace(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey, namespace = await make_prey(owner, lake, make_thief), fresh("n")
    assert (await owner.post(f"{lake.url}/namespaces", json={"namespace": [namespace]})).status_code == 200
    assert (await rename(owner, lake, prey.table, "moved", namespace)).status_code == 204

    answer = await prey.mallory.http.get(lake.path("moved", namespace), headers=VENDED)

    assert answer.json()["read-restrictions"]["required-row-filter"]
    assert "s3.access-key-id" not in answer.text


async def test_a_reservation_is_redeemed_once_and_by_nobody_else(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    rights = [Grant(each, ("ns",)) for each in ("TABLE_CREATE", "TABLE_WRITE_DATA")]
    user, thief = await make_thief(lake, *rights), await make_thief(lake, *rights)
    name = fresh()
    staged = (await make_table(user.http, lake, name, headers=VENDED, **{"stage-create": True})).json()[
        "metadata"
    ]

    stolen = [
        await thief.http.get(f"{lake.path(name)}/credentials"),
        await sign(thief.http, lake, name, staged["location"]),
        await thief.http.get(lake.path(name), headers=VENDED),
    ]
    renewed = await user.http.get(f"{lake.path(name)}/credentials")

    assert all(each.status_code in (403, 404) for each in stolen), [each.text for each in stolen]
    assert renewed.json()["storage-credentials"][0]["prefix"] == staged["location"]


async def test_a_reservation_ends_for_its_owner_with_the_name(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Somebody else creates a table of this name, in a place of its own, or the namespace goes."""
    namespace = fresh("n")
    assert (await owner.post(f"{lake.url}/namespaces", json={"namespace": [namespace]})).status_code == 200
    rights = [Grant(each, (namespace,)) for each in ("TABLE_CREATE", "TABLE_WRITE_DATA")]
    user, name = await make_thief(lake, *rights), fresh()
    staged = await make_table(
        user.http, lake, name, namespace=namespace, headers=VENDED, **{"stage-create": True}
    )
    assert staged.status_code == 200

    made = await make_table(owner, lake, name, namespace=namespace)
    taken = await user.http.get(f"{lake.path(name, namespace)}/credentials")
    assert (await owner.delete(lake.path(name, namespace))).status_code == 204
    assert (await owner.delete(f"{lake.url}/namespaces/{namespace}")).status_code == 204
    gone = await user.http.get(f"{lake.path(name, namespace)}/credentials")
    assert (await owner.post(f"{lake.url}/namespaces", json={"namespace": [namespace]})).status_code == 200
    anew = await user.http.get(f"{lake.path(name, namespace)}/credentials")

    assert made.status_code == 200
    # Whoever may write all of the namespace is given the table that is there.
    assert taken.json()["storage-credentials"][0]["prefix"] == made.json()["metadata"]["location"]
    assert gone.status_code == 404
    # Rights were on the namespace that went.
    assert anew.status_code in (403, 404)


async def test_of_drop_and_new_credentials_at_once_nobody_else_profits(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name, thief = fresh(), await make_thief(lake, CONTENT)
    location = f"{lake.base}/{name}"
    assert (await make_table(owner, lake, name, location=location)).status_code == 200

    async def take() -> httpx.Response:
        return await make_table(thief.http, lake, fresh(), location=location, headers=VENDED)

    _, *answers = await asyncio.gather(owner.delete(lake.path(name)), *(take() for _ in range(8)))

    assert {each.status_code for each in answers} == {403}
