"""Servers killed at random moments while many append to one table: every file is in it once (I81, I82).

Appends to the endpoint have keys, and are sent again until they are answered. Standard commits have none:
whoever does not know what became of one looks for its snapshot, as engines do.
"""

import asyncio
import json
import random
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from cynosure.iceberg.metadata import parse_metadata
from cynosure.testing.appended import data_file, judge_history
from cynosure.testing.catalog_server import ServedCatalog
from cynosure.testing.harness.processes import Processes
from tests.catalog.appending.test_rebase import REBASE, Client

from .phoenix import Phoenix, start_phoenix, until

pytestmark = pytest.mark.anyio

WRITERS = 16
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
Scale = Callable[[int, int], int]


class Storm:
    """Writers that append one file after the other, and what each was told."""

    def __init__(self, lake: ServedCatalog, http: httpx.AsyncClient) -> None:
        self._http = http
        self.table = f"{lake.url}/namespaces/ns/tables/t"
        self.told: dict[str, int] = {}
        self.unexpected: list[str] = []
        self.cut_off = 0
        self.is_over = False

    async def write(self, append: Callable[[str], Awaitable[int]], writer: int) -> None:
        number = 0
        while not self.is_over:
            name = f"w{writer:02d}-{number:04d}"
            self.told[name] = await append(name)
            number += 1

    async def send(self, method: str, url: str, **options: Any) -> httpx.Response | None:
        """`None` when nobody knows what became of it."""
        try:
            answer = await self._http.request(method, url, **options)
        except httpx.HTTPError:
            answer = None
        if answer is None or answer.status_code >= 500:
            self.cut_off += 1
            await asyncio.sleep(0.05)
            return None
        return answer

    async def load(self) -> dict[str, Any]:
        while True:
            answer = await self.send("GET", self.table)
            if answer is not None:
                assert answer.status_code == 200, answer.text
                metadata: dict[str, Any] = answer.json()["metadata"]
                return metadata

    async def post_files(self, name: str) -> int:
        """Through the endpoint, with a key, until it is answered."""
        url = f"{self.table.replace('/v1/', '/cynosure/v1/', 1)}/append"
        body = {"data-files": [data_file(self.location, name)]}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        while True:
            answer = await self.send("POST", url, json=body, headers=headers)
            if answer is None or "is in progress" in answer.text:
                continue
            if answer.status_code == 200:
                snapshot_id: int = answer.json()["snapshot-id"]
                return snapshot_id
            self.unexpected.append(answer.text)
            return 0

    async def post_commit(self, name: str) -> int:
        """As a standard commit, without a key."""
        commit = Seen(await self.load()).append(name)
        body = {"requirements": commit["requires"], "updates": commit["updates"]}
        while True:
            answer = await self.send("POST", self.table, json=body)
            if answer is not None and answer.status_code == 200:
                return int(commit["id"])
            if answer is not None:
                self.unexpected.append(answer.text)
                return 0
            snapshots = (await self.load()).get("snapshots", ())
            if commit["id"] in [each["snapshot-id"] for each in snapshots]:
                return int(commit["id"])

    async def prepare(self, **properties: str) -> None:
        namespace = self.table.partition("/tables/")[0]
        made = await self._http.post(namespace.rpartition("/")[0], json={"namespace": ["ns"]})
        assert made.status_code == 200, made.text
        body = {"name": "t", "schema": SCHEMA, "properties": properties}
        made = await self._http.post(f"{namespace}/tables", json=body)
        assert made.status_code == 200, made.text
        self.location = made.json()["metadata"]["location"]

    async def blow(
        self, append: Callable[[str], Awaitable[int]], phoenix: Phoenix, kills: int, rng: random.Random
    ) -> None:
        writers = [asyncio.create_task(self.write(append, number)) for number in range(WRITERS)]
        for _ in range(kills):
            told = len(self.told)
            await until(lambda told=told: len(self.told) > told + WRITERS or bool(self.unexpected))
            await asyncio.sleep(rng.uniform(0.0, 0.1))
            await phoenix.kill()
        self.is_over = True
        async with asyncio.timeout(60):
            await asyncio.gather(*writers)


class Seen(Client):
    """A writer that has loaded the table over HTTP."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.json = metadata
        self.metadata = parse_metadata(msgspec.json.encode(metadata))
        self.folder = Path(metadata["location"].removeprefix("file://")) / "metadata"


async def test_kill_9_among_appenders_with_keys_loses_and_doubles_no_file(
    processes: Processes, store_url: str, tmp_path: Path, rng: random.Random, scale: Scale
) -> None:
    phoenix = await start_phoenix(processes, tmp_path, store_url)
    lake = await phoenix.server.create_catalog("lake")
    async with lake.client() as http:
        storm = Storm(lake, http)
        await storm.prepare(**{"commit.manifest.min-count-to-merge": "10"})

        await storm.blow(storm.post_files, phoenix, scale(2, 20), rng)

        assert storm.unexpected == []
        assert storm.cut_off > 0
        metadata = await storm.load()
        assert judge_history(metadata, storm.told) == []
        assert len(metadata["snapshots"]) < len(storm.told), "nobody shared a commit"
        # What the killed ones left behind goes, and nothing that a snapshot names.
        swept = await phoenix.server.run_cli(
            "tables", "sweep", "lake", "--grace", "0s", "--thorough", "--json"
        )
        assert json.loads(swept)["files"] > 0
        assert judge_history(metadata, storm.told) == []
    assert await phoenix.server.process.stop() == 0


async def test_kill_9_among_commits_that_are_rebased_loses_and_doubles_no_file(
    processes: Processes, tmp_path: Path, rng: random.Random, scale: Scale
) -> None:
    phoenix = await start_phoenix(processes, tmp_path, f"sqlite:{tmp_path}/store.db")
    lake = await phoenix.server.create_catalog("lake")
    async with lake.client() as http:
        storm = Storm(lake, http)
        await storm.prepare(**REBASE)

        await storm.blow(storm.post_commit, phoenix, scale(2, 20), rng)

        assert storm.unexpected == []
        assert storm.cut_off > 0
        metadata = await storm.load()
        assert judge_history(metadata, storm.told) == []
        assert len(metadata["snapshots"]) == len(storm.told)
    assert await phoenix.server.process.stop() == 0
