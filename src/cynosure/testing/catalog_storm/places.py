"""Clients that want the same places and attach the same policies, while somebody restricted reads.

They create tables, at once or staged, in a few places that lie inside each other, send files to such places
by a property, drop tables, and make, attach and drop policies. Most of it is refused, and that is the point:
what is acknowledged must not overlap. Meanwhile a principal under a row filter that nobody takes away loads
the same tables.

A maintainer must not break: every answer of the restricted reader is looked at, and one without its
restrictions is written down whatever the storm does.
"""

import asyncio
import json
import random
from collections import Counter
from itertools import combinations
from typing import Any, Final

import httpx

from cynosure.storage.location import Location
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog
from cynosure.testing.catalog_storm.clients import SCHEMA

ROWS: Final = "only-some-rows"
_TABLES: Final = [f"t{number}" for number in range(6)]
_POLICIES: Final = [f"p{number}" for number in range(3)]
_PATH: Final = "write.data.path"
_VENDED: Final = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_EXPECTED: Final = frozenset({200, 204, 403, 404, 409, 503})
"""Whatever happens to the server, no client is told anything else: nobody sends what is wrong in itself."""


class PlaceStorm:
    """The clients of one catalog, and what they were told."""

    def __init__(self, server: CatalogServer, catalog: ServedCatalog, base: str, seed: int) -> None:
        self._server = server
        self._catalog = catalog
        self._base = base
        self._rng = random.Random(seed)
        self._namespace = f"{catalog.url}/namespaces/ns"
        self._policies = f"{catalog.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/policies"
        self.told: Counter[str] = Counter()
        """How often each kind of change was acknowledged."""
        self.restricted_reads = 0
        self.unexpected: list[str] = []
        """Answers that no client should have got."""

    async def prepare(self) -> None:
        """The namespace, the reader, and what restricts it."""
        async with self._server.client() as http:
            made = await http.post(f"{self._catalog.url}/namespaces", json={"namespace": ["ns"]})
            made.raise_for_status()
            reader = await Admin(http).create_user("reader", self._catalog.name, Grant("TABLE_READ_DATA"))
            content = json.dumps({"enable": True, "filter": "id > 10", "roles": ["reader_role"]})
            policy = {"name": ROWS, "type": "cynosure.row-filter", "content": content}
            (await http.post(self._policies, json=policy)).raise_for_status()
            target = {"target": {"type": "namespace", "path": ["ns"]}}
            (await http.put(f"{self._policies}/{ROWS}/mappings", json=target)).raise_for_status()
        self._reader = self._server.login_as(reader)
        self._reader.token()

    async def blow(self, writers: int) -> None:
        """Write with so many clients, and read with one, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(random.Random(self._rng.random())))
            for _ in range(writers):
                group.create_task(self._write(random.Random(self._rng.random())))

    async def judge(self) -> list[str]:
        """What is wrong with the tables that there are now."""
        places: list[tuple[str, Location]] = []
        async with self._catalog.client() as http:
            listed = (await http.get(f"{self._namespace}/tables")).raise_for_status().json()
            for each in listed["identifiers"]:
                name = each["name"]
                loaded = (await http.get(f"{self._namespace}/tables/{name}")).raise_for_status().json()
                metadata = loaded["metadata"]
                texts = {metadata["location"], metadata["properties"].get(_PATH, metadata["location"])}
                places += [(name, Location.parse(text)) for text in texts]
        return [
            f"{one} at {here.text} and {other} at {there.text} overlap"
            for (one, here), (other, there) in combinations(places, 2)
            if one != other and (here.is_within(there) or there.is_within(here))
        ]

    # --- who restricts nothing ------------------------------------------------------------------

    async def _write(self, rng: random.Random) -> None:
        changes = [self._create, self._stage, self._send_files, self._drop, self._attach, self._drop_policy]
        async with self._catalog.client(timeout=20) as http:
            while True:
                change = rng.choices(changes, weights=[3, 3, 4, 3, 4, 1])[0]
                try:
                    answer = await change(http, rng)
                except httpx.TransportError:
                    # The server was killed, or is being started.
                    await asyncio.sleep(rng.uniform(0.005, 0.05))
                    continue
                self._note(change.__name__.removeprefix("_"), answer)

    def _note(self, kind: str, answer: httpx.Response) -> None:
        if answer.is_success:
            self.told[kind] += 1
        if answer.status_code not in _EXPECTED:
            self.unexpected.append(f"{kind}: {answer.status_code} {answer.text[:300]}")

    def _place(self, rng: random.Random) -> str:
        return "/".join([self._base, "places", *rng.choices("abc", k=rng.choice((1, 2, 2, 3)))])

    async def _create(self, http: httpx.AsyncClient, rng: random.Random) -> httpx.Response:
        wanted = {"name": rng.choice(_TABLES), "schema": SCHEMA, "location": self._place(rng)}
        return await http.post(f"{self._namespace}/tables", json=wanted)

    async def _stage(self, http: httpx.AsyncClient, rng: random.Random) -> httpx.Response:
        name = rng.choice(_TABLES)
        wanted = {"name": name, "schema": SCHEMA, "location": self._place(rng), "stage-create": True}
        staged = await http.post(f"{self._namespace}/tables", json=wanted, headers=_VENDED)
        if not staged.is_success or rng.random() < 0.3:
            return staged
        url = f"{self._namespace}/tables/{name}"
        return await http.post(url, json=creation_of(staged.json()["metadata"]))

    async def _send_files(self, http: httpx.AsyncClient, rng: random.Random) -> httpx.Response:
        updates = [{"action": "set-properties", "updates": {_PATH: self._place(rng)}}]
        url = f"{self._namespace}/tables/{rng.choice(_TABLES)}"
        return await http.post(url, json={"requirements": [], "updates": updates})

    async def _drop(self, http: httpx.AsyncClient, rng: random.Random) -> httpx.Response:
        return await http.delete(f"{self._namespace}/tables/{rng.choice(_TABLES)}")

    async def _attach(self, http: httpx.AsyncClient, rng: random.Random) -> httpx.Response:
        name = rng.choice(_POLICIES)
        policy = {"name": name, "type": "system.snapshot-expiry", "content": '{"enable":true}'}
        await http.post(self._policies, json=policy)
        target = {"target": {"type": "table-like", "path": ["ns", rng.choice(_TABLES)]}}
        send = rng.choice((http.put, http.put, http.post))
        return await send(f"{self._policies}/{name}/mappings", json=target)

    async def _drop_policy(self, http: httpx.AsyncClient, rng: random.Random) -> httpx.Response:
        return await http.delete(f"{self._policies}/{rng.choice(_POLICIES)}?detach-all=true")

    # --- who is restricted ----------------------------------------------------------------------

    async def _read(self, rng: random.Random) -> None:
        async with self._server.client(self._reader, timeout=20) as http:
            while True:
                url = f"{self._namespace}/tables/{rng.choice(_TABLES)}"
                try:
                    self._judge_read(await http.get(url, headers=_VENDED))
                    given = await http.get(f"{url}/credentials")
                except httpx.TransportError:
                    await asyncio.sleep(0.02)
                    continue
                if given.is_success or given.status_code not in _EXPECTED:
                    self.unexpected.append(f"credentials of the restricted: {given.status_code}")

    def _judge_read(self, answer: httpx.Response) -> None:
        self._note("read", answer)
        if answer.is_success:
            found = answer.json()
            self.restricted_reads += 1
            if not found.get("read-restrictions", {}).get("required-row-filter"):
                self.unexpected.append("a restricted read without its restriction")
            if "s3.access-key-id" in answer.text or found.get("storage-credentials"):
                self.unexpected.append("a restricted read with credentials")


def creation_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """The commit that creates what was staged."""
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": metadata["properties"]},
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}
