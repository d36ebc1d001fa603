"""A catalog whose tables are owned elsewhere: who tells it about them tells it nothing of others' files."""

import json
import secrets
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import MANAGEMENT, Admin, Grant
from tests.robustness.attacks.storage.lakes import VENDED, Lake, key_of, make_table
from tests.robustness.attacks.storage.test_restricted import policies_of, row_filter
from tests.robustness.attacks.user import MakeUser

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
NOTIFIER = ("TABLE_CREATE", "TABLE_WRITE_PROPERTIES", "TABLE_DROP", "NAMESPACE_CREATE", "NAMESPACE_DROP")


@dataclass(frozen=True)
class External:
    """An external catalog with one table, and what metadata looks like."""

    lake: Lake
    template: Json

    def plant(self, name: str, **changed: Any) -> tuple[str, str]:
        """A metadata file of a table of this name, as its owner writes it; where, and the table's id."""
        own = {"location": f"{self.lake.base}/{name}", "table-uuid": str(uuid.uuid4()), **changed}
        place = f"{self.lake.base}/{name}/metadata/v{secrets.token_hex(4)}.metadata.json"
        bucket, key = key_of(place)
        body = json.dumps({**self.template, **own}).encode()
        self.lake.as_owner().put_object(Bucket=bucket, Key=key, Body=body)
        return place, own["table-uuid"]

    async def notify(
        self, http: httpx.AsyncClient, kind: str, name: str, place: str, table_uuid: str, at: int = 1
    ) -> httpx.Response:
        told = {
            "table-name": name,
            "timestamp": at,
            "table-uuid": table_uuid,
            "metadata-location": place,
        }
        path = f"{self.lake.path(name)}/notifications"
        return await http.post(path, json={"notification-type": kind, "payload": told})


async def make_external(owner: httpx.AsyncClient, lake: Lake) -> External:
    made = await make_table(owner, lake, f"t{secrets.token_hex(4)}")
    name, base = f"e{secrets.token_hex(4)}", lake.store.fresh_location()
    body = {
        "type": "EXTERNAL",
        "name": name,
        "properties": {"default-base-location": base},
        "storageConfigInfo": {"allowedLocations": [base], **lake.store.storage()},
    }
    created = await owner.post(f"{MANAGEMENT}/catalogs", json={"catalog": body})
    assert created.status_code == 201, created.text
    await Admin(owner).grant_content(name)
    return External(Lake(lake.server, lake.store, name, base), made.json()["metadata"])


async def test_a_notification_leads_into_no_other_table(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    external = await make_external(owner, lake)
    victim, table_uuid = external.plant("victim")
    assert (await external.notify(owner, "CREATE", "victim", victim, table_uuid)).status_code == 204
    own, own_uuid = external.plant("own")
    thief = await make_thief(external.lake, *NOTIFIER)
    assert (await external.notify(thief.http, "CREATE", "own", own, own_uuid)).status_code == 204
    at = f"{external.lake.base}/victim"
    forged = [
        external.plant("own", **changed)
        for changed in (
            {"location": at},
            {"location": external.lake.base},
            {"properties": {"write.data.path": f"{at}/data"}},
            {"properties": {"write.metadata.path": at}},
            {"metadata-log": [{"timestamp-ms": 1, "metadata-file": victim}]},
        )
    ]
    outside = f"{lake.base}/x/metadata/v1.metadata.json"

    answers = [
        await external.notify(thief.http, kind, name, place, id_, number)
        for number, (place, id_) in enumerate(
            [*forged, (victim, table_uuid), (outside, table_uuid), ("file:///etc/passwd", own_uuid)], start=2
        )
        for kind, name in (("UPDATE", "own"), ("CREATE", f"new{number}"))
    ]

    assert {each.status_code for each in answers} <= {400, 403}, [
        each.text for each in answers if each.status_code not in (400, 403)
    ]
    loaded = await thief.http.get(external.lake.path("own"), headers=VENDED)
    assert loaded.status_code == 403, "who tells of tables need not read them"


async def test_who_is_filtered_tells_of_no_table_and_makes_none(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    external = await make_external(owner, lake)
    place, table_uuid = external.plant("t")
    assert (await external.notify(owner, "CREATE", "t", place, table_uuid)).status_code == 204
    mallory = await make_thief(external.lake, "CATALOG_MANAGE_CONTENT")
    policy = {"name": "p", "type": "cynosure.row-filter", "content": row_filter(roles=[mallory.role])}
    policies, target = policies_of(external.lake), {"target": {"type": "table-like", "path": ["ns", "t"]}}
    assert (await owner.post(policies, json=policy)).status_code == 200
    assert (await owner.put(f"{policies}/p/mappings", json=target)).status_code == 204
    again, _ = external.plant("t")

    answers = [
        await external.notify(mallory.http, "UPDATE", "t", place, table_uuid, 2),
        await external.notify(mallory.http, "DROP", "t", place, table_uuid, 3),
        await external.notify(mallory.http, "CREATE", "other", again, table_uuid, 4),
        await mallory.http.post(
            f"{external.lake.url}/namespaces/ns/register",
            json={"name": "other", "metadata-location": place},
            headers=VENDED,
        ),
        await mallory.http.get(f"{external.lake.path('t')}/credentials"),
        await mallory.http.post(
            f"{external.lake.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/generic-tables",
            json={"name": "g", "format": "delta", "base-location": f"{external.lake.base}/t"},
            headers={"Polaris-Generic-Table-Access-Delegation": "vended-credentials"},
        ),
    ]
    loaded = await mallory.http.get(external.lake.path("t"), headers=VENDED)

    assert {each.status_code for each in answers} == {403}, [each.text for each in answers]
    assert loaded.json()["read-restrictions"]["required-row-filter"]
    assert "s3.access-key-id" not in loaded.text


async def test_an_internal_catalog_takes_no_notifications(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    made = (await make_table(owner, lake, name := f"t{secrets.token_hex(4)}")).json()
    thief = await make_thief(lake, "CATALOG_MANAGE_CONTENT", Grant("TABLE_READ_DATA", ("ns",), name))
    internal = External(lake, made["metadata"])
    place, table_uuid = made["metadata-location"], made["metadata"]["table-uuid"]

    for kind in ("CREATE", "UPDATE", "DROP", "VALIDATE", "UNKNOWN"):
        answer = await internal.notify(thief.http, kind, name, place, table_uuid, 9)
        assert answer.status_code == 400, answer.text
    assert (await owner.get(lake.path(name))).json()["metadata"] == made["metadata"]
