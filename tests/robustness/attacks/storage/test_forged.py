"""Metadata that somebody made up: it may say anything, and leads into no other table. Promise I60.

Whoever may write a table may put any bytes into its directory, a metadata file that names another table's
files among them. Registering it, or committing the same, would make them its own.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from cynosure.testing.admin import Grant
from tests.robustness.attacks.storage.lakes import VENDED, Lake, connect_with, key_of, make_table
from tests.robustness.attacks.user import MakeUser, User

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
REFUSED = frozenset({400, 403, 409})
WRITER = ("TABLE_CREATE", "TABLE_DROP", "TABLE_WRITE_DATA", "TABLE_FULL_METADATA", "TABLE_LIST")


@dataclass(frozen=True)
class Scene:
    """A thief with a namespace of its own, and a table in another one."""

    lake: Lake
    thief: User
    namespace: str
    victim: Json
    """As its owner loads it."""

    @property
    def location(self) -> str:
        return str(self.victim["metadata"]["location"])

    def path(self, table: str) -> str:
        return self.lake.path(table, self.namespace)

    async def make_own(self) -> tuple[str, Json]:
        name = f"own{secrets.token_hex(4)}"
        made = await make_table(self.thief.http, self.lake, name, namespace=self.namespace, headers=VENDED)
        assert made.status_code == 200, made.text
        return name, made.json()

    def plant(self, own: Json, metadata: Json) -> str:
        """Write a metadata file with what the thief was given; where it is."""
        place = f"{own['metadata']['location']}/metadata/00009-{secrets.token_hex(8)}.metadata.json"
        bucket, key = key_of(place)
        s3 = connect_with(self.lake.store, own["storage-credentials"][0]["config"])
        s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(metadata).encode())
        return place

    async def register(self, name: str, place: str, *, overwrite: bool = False) -> httpx.Response:
        body = {"name": name, "metadata-location": place, "overwrite": overwrite}
        path = f"{self.lake.url}/namespaces/{self.namespace}/register"
        return await self.thief.http.post(path, json=body, headers=VENDED)


async def make_scene(owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser) -> Scene:
    namespace, name = f"n{secrets.token_hex(4)}", f"victim{secrets.token_hex(4)}"
    assert (await owner.post(f"{lake.url}/namespaces", json={"namespace": [namespace]})).status_code == 200
    assert (await make_table(owner, lake, name)).status_code == 200
    thief = await make_thief(lake, *(Grant(each, (namespace,)) for each in WRITER))
    assert (await thief.http.get(lake.path(name), headers=VENDED)).status_code == 403
    return Scene(lake, thief, namespace, (await owner.get(lake.path(name))).json())


def snapshot(manifest_list: str) -> Json:
    return {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "summary": {"operation": "append"},
        "manifest-list": manifest_list,
        "schema-id": 0,
    }


def with_snapshot(metadata: Json, manifest_list: str) -> Json:
    return {**metadata, "last-sequence-number": 1, "snapshots": [snapshot(manifest_list)]}


def statistics(place: str) -> Json:
    return {
        "snapshot-id": 7,
        "statistics-path": place,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }


def partition_statistics(place: str) -> Json:
    return {"snapshot-id": 7, "statistics-path": place, "file-size-in-bytes": 1}


FORGERIES: dict[str, Callable[[Json, str, Scene], Json]] = {
    "its location": lambda own, at, scene: {**own, "location": at},
    "inside its location": lambda own, at, scene: {**own, "location": f"{at}/data"},
    "around its location": lambda own, at, scene: {**own, "location": scene.lake.base},
    "its data path": lambda own, at, scene: {**own, "properties": {"write.data.path": f"{at}/data"}},
    "its metadata path": lambda own, at, scene: {**own, "properties": {"write.metadata.path": at}},
    "its path of old": lambda own, at, scene: {**own, "properties": {"write.object-storage.path": at}},
    "its snapshot": lambda own, at, scene: with_snapshot(own, f"{at}/metadata/snap-1.avro"),
    "its statistics": lambda own, at, scene: {
        **with_snapshot(own, f"{own['location']}/metadata/snap-1.avro"),
        "statistics": [statistics(f"{at}/metadata/x.stats")],
    },
    "its statistics of partitions": lambda own, at, scene: {
        **with_snapshot(own, f"{own['location']}/metadata/snap-1.avro"),
        "partition-statistics": [partition_statistics(f"{at}/metadata/x.parquet")],
    },
    "its metadata": lambda own, at, scene: {
        **own,
        "metadata-log": [{"timestamp-ms": 1, "metadata-file": scene.victim["metadata-location"]}],
    },
}


async def test_metadata_that_was_made_up_makes_nothing_of_anothers_ones_own(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    scene = await make_scene(owner, lake, make_thief)
    taken = {}

    for kind, forge in FORGERIES.items():
        name, own = await scene.make_own()
        place = scene.plant(own, forge(own["metadata"], scene.location, scene))
        answers = [
            await scene.register(f"new{secrets.token_hex(4)}", place),
            await scene.register(name, place, overwrite=True),
        ]
        # The place of a table that was given up is free for whoever may register there.
        assert (await scene.thief.http.post(f"{scene.path(name)}/unregister")).status_code == 200
        answers.append(await scene.register(f"new{secrets.token_hex(4)}", place))
        if any(each.status_code not in REFUSED or "s3.access-key-id" in each.text for each in answers):
            taken[kind] = [f"{each.status_code} {each.text[:200]}" for each in answers]

    assert taken == {}


async def test_metadata_that_tells_the_truth_is_registered(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """So that the refusals above are about what was forged."""
    scene = await make_scene(owner, lake, make_thief)
    name, own = await scene.make_own()
    honest = with_snapshot(own["metadata"], f"{own['metadata']['location']}/metadata/snap-1.avro")
    place = scene.plant(own, honest)

    over = await scene.register(name, place, overwrite=True)
    assert (await scene.thief.http.post(f"{scene.path(name)}/unregister")).status_code == 200
    again = await scene.register(f"new{secrets.token_hex(4)}", place)

    assert (over.status_code, again.status_code) == (200, 200), over.text + again.text


async def test_no_commit_brings_files_of_another_table(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    scene = await make_scene(owner, lake, make_thief)
    at = scene.location
    name, own = await scene.make_own()
    changes: dict[str, list[Json]] = {
        "a snapshot": [{"action": "add-snapshot", "snapshot": snapshot(f"{at}/metadata/snap-1.avro")}],
        "statistics": [{"action": "set-statistics", "statistics": statistics(f"{at}/metadata/x.stats")}],
        "of partitions": [
            {
                "action": "set-partition-statistics",
                "partition-statistics": partition_statistics(f"{at}/metadata/x.parquet"),
            }
        ],
    }
    identifier = {"namespace": [scene.namespace], "name": name}
    taken = {}

    for kind, updates in changes.items():
        change: Json = {"requirements": [], "updates": updates}
        together = {"table-changes": [{"identifier": identifier, **change}]}
        answers = [
            await scene.thief.send("POST", scene.path(name), change),
            await scene.thief.send("POST", f"{lake.url}/transactions/commit", together),
        ]
        if any(each.status_code not in REFUSED for each in answers):
            taken[kind] = [f"{each.status_code} {each.text[:200]}" for each in answers]

    assert taken == {}
    assert (await scene.thief.http.get(scene.path(name))).json()["metadata"] == own["metadata"]


async def test_what_the_server_reads_for_a_registration_is_told_to_nobody(
    owner: httpx.AsyncClient, lake: Lake, make_thief: MakeUser
) -> None:
    """A file in the catalog's bucket that is no metadata, nor any table's."""
    scene = await make_scene(owner, lake, make_thief)
    bucket, key = key_of(f"{lake.base}/{scene.namespace}/stray{secrets.token_hex(4)}")
    texts = [b"hunter2-plain", b'{"secret":"hunter2-json"}', b'{"format-version":"hunter2-version"}']
    texts += [json.dumps({**scene.victim["metadata"], "table-uuid": "hunter2-uuid"}).encode()]

    for text in texts:
        lake.as_owner().put_object(Bucket=bucket, Key=key, Body=text)
        answer = await scene.register(f"r{secrets.token_hex(4)}", f"s3://{bucket}/{key}")

        assert answer.status_code in REFUSED, answer.text
        assert "hunter2" not in answer.text
