"""A staged creation gets credentials before there is a table: for a place that is reserved first. I61."""

import asyncio
import secrets
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.robustness.attacks.storage.lakes import (
    VENDED,
    Lake,
    assert_denied,
    connect_with,
    key_of,
    make_table,
)
from tests.robustness.attacks.user import MakeUser, User

pytestmark = pytest.mark.anyio

STAGED: dict[str, Any] = {"stage-create": True}


def creation(metadata: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The commit that creates what was staged."""
    updates = [
        {"action": "assign-uuid", "uuid": changed.get("uuid", metadata["table-uuid"])},
        {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": changed.get("location", metadata["location"])},
        {"action": "set-properties", "updates": {}},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


async def writer(lake: Lake, make_thief: MakeUser) -> User:
    return await make_thief(lake, Grant("TABLE_CREATE", ("ns",)), Grant("TABLE_WRITE_DATA", ("ns",)))


def fresh() -> str:
    return f"t{secrets.token_hex(4)}"


async def test_what_is_staged_is_written_and_then_created(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    user, name = await writer(lake, make_thief), fresh()

    staged = (await make_table(user.http, lake, name, headers=VENDED, **STAGED)).json()
    bucket, key = key_of(staged["metadata"]["location"])
    s3 = connect_with(lake.store, staged["storage-credentials"][0]["config"])
    s3.put_object(Bucket=bucket, Key=f"{key}/data/file", Body=b"x")
    created = await user.http.post(lake.path(name), json=creation(staged["metadata"]))

    assert created.status_code == 200, created.text
    assert created.json()["metadata"]["location"] == staged["metadata"]["location"]


async def test_a_staged_place_is_nobody_elses(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    user, thief = await writer(lake, make_thief), await writer(lake, make_thief)
    staged = (await make_table(user.http, lake, fresh(), headers=VENDED, **STAGED)).json()
    location = staged["metadata"]["location"]

    refused = [
        await make_table(thief.http, lake, fresh(), location=location, headers=VENDED),
        await make_table(thief.http, lake, fresh(), location=f"{location}/data", headers=VENDED),
        await make_table(thief.http, lake, fresh(), location=location, headers=VENDED, **STAGED),
        await thief.http.post(lake.path(fresh()), json=creation(staged["metadata"])),
        await thief.http.post(lake.path(fresh()), json=creation(staged["metadata"], uuid=str(_uuid()))),
    ]

    assert [answer.status_code for answer in refused] == [403] * len(refused), [a.text for a in refused]
    assert all("s3.access-key-id" not in answer.text for answer in refused)


async def test_credentials_of_a_staged_table_reach_no_other(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    user, victim = await writer(lake, make_thief), fresh()
    made = (await make_table(owner, lake, victim)).json()
    bucket, key = key_of(made["metadata-location"])

    staged = (await make_table(user.http, lake, fresh(), headers=VENDED, **STAGED)).json()
    s3 = connect_with(lake.store, staged["storage-credentials"][0]["config"])

    assert_denied(lambda: s3.get_object(Bucket=bucket, Key=key))
    assert_denied(lambda: s3.put_object(Bucket=bucket, Key=f"{key}.x", Body=b"x"))


async def test_of_two_who_stage_one_place_at_once_one_gets_it(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    users = [await writer(lake, make_thief) for _ in range(2)]
    location = f"{lake.base}/{fresh()}"

    answers = await asyncio.gather(
        *(
            make_table(user.http, lake, fresh(), location=location, headers=VENDED, **STAGED)
            for user in users
            for _ in range(4)
        )
    )

    assert sum("storage-credentials" in answer.text for answer in answers) == 1
    assert sorted(answer.status_code for answer in answers) == [200] + [403] * 7


async def test_whoever_may_not_write_data_stages_without_credentials_only(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    user = await make_thief(lake, Grant("TABLE_CREATE", ("ns",)))

    with_credentials = await make_table(user.http, lake, fresh(), headers=VENDED, **STAGED)
    without = await make_table(user.http, lake, fresh(), **STAGED)

    assert (with_credentials.status_code, without.status_code) == (403, 200)
    assert "s3.access-key-id" not in without.text


def _uuid() -> str:
    raw = secrets.token_hex(16)
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-8{raw[17:20]}-{raw[20:]}"
