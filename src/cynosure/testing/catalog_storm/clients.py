"""Clients that commit to a few tables again and again, and write down what they were told.

Two kinds of commits. A *snapshot* with an id of its own stays in its table for ever, so each one that was
acknowledged can be looked for. A *count* is a property of its client that only ever grows, so the last one
that was acknowledged is a lower bound of what the table says.

A maintainer must not break: a request is written down before it is sent.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx

from cynosure.testing.catalog_server import ServedCatalog

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}
NAMESPACE = "storm"

Outcome = Literal["sent", "acknowledged", "refused", "unknown"]
_OUTCOMES: Final[dict[int, Outcome]] = {200: "acknowledged", 500: "unknown", 502: "unknown", 504: "unknown"}


@dataclass
class Sent:
    """One commit and what came of it. Stays `sent` when the answer was cut off."""

    client: int
    table: str
    kind: Literal["snapshot", "count"]
    number: int
    """Snapshot id, or the count."""
    outcome: Outcome = "sent"
    status: int = 0


@dataclass
class Ledger:
    """Everything that was sent."""

    sent: list[Sent] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        """How many commits ended like this."""
        return sum(each.outcome == outcome for each in self.sent)

    def unexpected(self) -> list[Sent]:
        """Answers that no client should get, whatever happens to the server."""
        return [each for each in self.sent if each.outcome == "refused" and each.status not in (409, 503)]


class Clients:
    """Several clients on the tables of one catalog."""

    def __init__(self, catalog: ServedCatalog, tables: list[str], ledger: Ledger, seed: int) -> None:
        self._catalog = catalog
        self._base = f"{catalog.url}/namespaces"
        self._tables = tables
        self._ledger = ledger
        self._rng = random.Random(seed)
        self._snapshot_ids = iter(self._rng.sample(range(1, 1 << 40), 200_000))
        self._uuids: dict[str, str] = {}

    async def create_tables(self) -> None:
        """The namespace and its tables; harmless when they are there."""
        async with self._catalog.client() as http:
            await http.post(self._base, json={"namespace": [NAMESPACE]})
            for name in self._tables:
                wanted = {"name": name, "schema": SCHEMA}
                answer = await http.post(f"{self._base}/{NAMESPACE}/tables", json=wanted)
                assert answer.status_code in (200, 409), answer.text

    async def blow(self, clients: int, *, first: int = 0) -> None:
        """Commit with so many clients until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(first, first + clients):
                group.create_task(self._run(number, random.Random(self._rng.random())))

    async def _run(self, client: int, rng: random.Random) -> None:
        async with self._catalog.client(timeout=20) as http:
            for count in range(1, 1 << 30):
                sent = Sent(client, rng.choice(self._tables), rng.choice(("snapshot", "count")), count)
                try:
                    await self._commit(http, sent)
                except httpx.TransportError:
                    # The server was killed, or is being started.
                    await asyncio.sleep(rng.uniform(0.005, 0.05))

    async def _commit(self, http: httpx.AsyncClient, sent: Sent) -> None:
        url = f"{self._base}/{NAMESPACE}/tables/{sent.table}"
        if sent.table not in self._uuids or sent.kind == "snapshot":
            loaded = await http.get(url)
            if loaded.status_code != 200:
                return
            metadata = loaded.json()["metadata"]
            self._uuids[sent.table] = metadata["table-uuid"]
        updates: list[dict[str, Any]]
        if sent.kind == "snapshot":
            sent.number = next(self._snapshot_ids)
            updates = _snapshot(sent.number, metadata)
        else:
            updates = [{"action": "set-properties", "updates": {f"client-{sent.client}": str(sent.number)}}]
        requirements = [{"type": "assert-table-uuid", "uuid": self._uuids[sent.table]}]
        self._ledger.sent.append(sent)
        answer = await http.post(url, json={"requirements": requirements, "updates": updates})
        sent.status = answer.status_code
        sent.outcome = _OUTCOMES.get(answer.status_code, "refused")


def _snapshot(number: int, metadata: dict[str, Any]) -> list[dict[str, Any]]:
    sequence = metadata["last-sequence-number"] + 1
    entry = {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": f"{metadata['location']}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    parent = metadata.get("current-snapshot-id", -1)
    if parent != -1:
        entry["parent-snapshot-id"] = parent
    return [
        {"action": "add-snapshot", "snapshot": entry},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    ]
