"""The many ways to ask: no spelling of a header, parameter or method gives more than the plain question."""

import json
import secrets
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from tests.robustness.attacks.storage.lakes import SIGNED, VENDED, Lake, make_table
from tests.robustness.attacks.storage.test_restricted import Prey, make_prey, row_filter
from tests.robustness.attacks.user import MakeUser, User

pytestmark = pytest.mark.anyio

HEADER = "X-Iceberg-Access-Delegation"
SPELLINGS: tuple[list[tuple[str, str]], ...] = (
    [(HEADER, "VENDED-CREDENTIALS")],
    [(HEADER, "vended-credentials ,  remote-signing")],
    [(HEADER, "remote-signing,vended-credentials")],
    [(HEADER, "vended-credentials,vended-credentials")],
    [(HEADER, ",,,vended-credentials,,,")],
    [(HEADER, "something-new, vended-credentials")],
    [(HEADER, "true")],
    [(HEADER, "TRUE")],
    [(HEADER.upper(), "remote-signing"), (HEADER.lower(), "vended-credentials")],
    [(HEADER, ""), (HEADER, "vended-credentials")],
    [(HEADER, "none"), (HEADER, "vended-credentials")],
    [("X_Iceberg_Access_Delegation", "vended-credentials")],
    [(HEADER, "*")],
    [(HEADER, "vended-credentials;q=1")],
    [(HEADER, "vended-credentials" * 400)],
)
COUNT = 424_200_110_022_033
"""So long that no identifier in an answer holds it by chance."""
SECRETS = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.remote-signing-enabled")


def is_given(answer: httpx.Response) -> bool:
    """Whether an answer holds anything to reach files with."""
    told = answer.text + str(answer.headers)
    return any(word in told for word in SECRETS)


async def assert_nothing_given(user: User, lake: Lake, name: str) -> None:
    path = lake.path(name)
    for headers in SPELLINGS:
        for query in ("", "?snapshots=refs", "?snapshots=all&referenced-by=ns.v", "?planId=x"):
            answer = await user.http.get(path + query, headers=headers)
            assert not is_given(answer), f"{headers} {query}: {answer.status_code}"
    queries = ("", "?planId=x", "?referenced-by=ns.v", "?planId=x&referenced-by=a,b", "?referenced-by=%00")
    for query in queries:
        answer = await user.http.get(f"{path}/credentials{query}")
        assert answer.status_code in (400, 403), answer.text
        assert not is_given(answer)
    head = await user.http.head(path, headers=VENDED)
    assert not is_given(head)


async def test_no_spelling_gives_files_to_who_may_not_read_them(
    owner: httpx.AsyncClient, any_lake: Lake, make_thief: MakeUser
) -> None:
    name = f"t{secrets.token_hex(4)}"
    assert (await make_table(owner, any_lake, name)).status_code == 200
    somebody = await make_thief(any_lake, Grant("TABLE_FULL_METADATA", ("ns",), name))

    await assert_nothing_given(somebody, any_lake, name)


async def test_no_spelling_gives_files_to_who_is_restricted(
    owner: httpx.AsyncClient, any_lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, any_lake, make_thief)

    await assert_nothing_given(prey.mallory, any_lake, prey.table)


async def test_no_spelling_gives_a_reader_more_than_to_read(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    name = f"t{secrets.token_hex(4)}"
    assert (await make_table(owner, lake, name)).status_code == 200
    reader = await make_thief(lake, Grant("TABLE_READ_DATA", ("ns",), name))
    plain = (await reader.http.get(lake.path(name), headers=VENDED)).json()

    for headers in SPELLINGS:
        found = (await reader.http.get(lake.path(name), headers=headers)).json()
        # The very same credentials, signatures, or none at all.
        assert found.get("storage-credentials", plain["storage-credentials"]) == plain["storage-credentials"]


async def test_a_plan_gives_the_restricted_nothing_to_read_with(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """A plan names files and tells values of columns: neither access nor values are for everybody (I88)."""
    prey = await make_prey(owner, lake, make_thief)
    file = {
        "content": "data",
        "file-path": f"{prey.location}/data/one.parquet",
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": 1234,
        "record-count": COUNT,
    }
    ours = prey.path.replace("/v1/", "/cynosure/v1/", 1)
    made = await owner.post(f"{ours}/append", json={"data-files": [file]})
    assert made.status_code == 200, made.text

    for headers in ({}, VENDED, SIGNED):
        answer = await prey.mallory.http.post(f"{prey.path}/plan", json={}, headers=headers)
        assert answer.status_code == 200, answer.text
        plan = answer.json()
        assert [task["data-file"]["record-count"] for task in plan["file-scan-tasks"]] == [1]
        assert "storage-credentials" not in plan
        assert str(COUNT) not in answer.text
        for path in (f"plan/{plan['plan-id']}/credentials", "plan/x/credentials", "PLAN"):
            again = await prey.mallory.http.get(f"{prey.path}/{path}", headers=headers)
            assert again.status_code == 404, again.text


def replace_policy(prey: Prey, **content: Any) -> dict[str, Any]:
    return {"content": row_filter(roles=[prey.mallory.role], **content)}


async def test_no_answer_is_still_good_when_what_somebody_may_see_has_changed(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """Through every change of a restriction, and between principals, with every tag there ever was."""
    prey = await make_prey(owner, lake, make_thief)
    policy, mallory = f"{prey.policies}/{prey.policy}", prey.mallory
    tags: dict[str, set[str]] = {}

    async def load(user: httpx.AsyncClient) -> None:
        for headers in ({}, VENDED, SIGNED):
            for query in ("", "?snapshots=refs"):
                fresh = await user.get(prey.path + query, headers=headers)
                assert fresh.status_code == 200, fresh.text
                body = fresh.json()
                told = json.dumps(
                    [body["metadata"], body.get("read-restrictions"), body.get("storage-credentials")]
                )
                for tag, known in tags.items():
                    again = await user.get(prey.path + query, headers={**headers, "If-None-Match": tag})
                    if again.status_code == 304:
                        assert told in known, f"{tag} stood for something else"
                tags.setdefault(fresh.headers["etag"], set()).add(told)

    await load(owner)
    await load(mallory.http)
    for change in (replace_policy(prey, filter="id > 20"), replace_policy(prey, enable=False)):
        current = (await owner.get(policy)).json()["policy"]["version"]
        changed = await owner.put(policy, json={**change, "current-policy-version": current})
        assert changed.status_code == 200, changed.text
        await load(mallory.http)
    assert (await owner.post(f"{policy}/mappings", json=prey.target())).status_code == 204
    await load(mallory.http)
    await load(owner)


async def test_a_role_that_restricts_counts_from_the_next_request_on(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    prey = await make_prey(owner, lake, make_thief)
    alice = await make_thief(lake, "CATALOG_MANAGE_CONTENT")
    assert is_given(await alice.http.get(prey.path, headers=VENDED))
    # Its token, and all that is remembered about it, is from before.
    await Admin(owner).assign_role(alice.name, prey.mallory.role)

    for headers in (VENDED, SIGNED):
        answer = await alice.http.get(prey.path, headers=headers)
        assert answer.json()["read-restrictions"]["required-row-filter"]
        assert not is_given(answer)
    assert (await alice.http.get(f"{prey.path}/credentials")).status_code == 403
