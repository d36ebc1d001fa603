"""A server, its catalog, and what a test asks of them."""

import asyncio
import uuid
from typing import Any, Final, NamedTuple

import httpx

from cynosure.idempotency.record import RECORD
from cynosure.persistence.spi import SYSTEM_REALM, ObjId
from cynosure.testing.crash_matrix.chain import ChainReader
from cynosure.testing.small_servers import GatedBackend, SmallServer

CATALOGS: Final = "/api/management/v1/catalogs"

REPLAYED: Final = "idempotency-replayed"
SCHEMA: Final = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
QUICK: Final = {"idempotency__lease": "300ms", "idempotency__wait": "20s"}
"""A dead server is given up soon."""
SLOW: Final = {"idempotency__lease": "50s", "idempotency__wait": "55s"}
"""Nobody is given up while a test lasts."""

Json = dict[str, Any]


def new_key() -> str:
    """A key that nobody has used."""
    return str(uuid.uuid4())


def namespace(name: str = "a", **properties: str) -> Json:
    """What creates a namespace."""
    return {"namespace": [name], "properties": properties}


def error_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and type of a refusal."""
    return answer.status_code, answer.json()["error"]["type"]


class Side(NamedTuple):
    """One of the servers, and the catalog of this test."""

    server: SmallServer
    lake: str
    """Its path."""

    @property
    def http(self) -> httpx.AsyncClient:
        """A client of the server."""
        return self.server.http

    @property
    def gate(self) -> GatedBackend:
        """What is before its database."""
        return self.server.gate

    @property
    def namespaces(self) -> str:
        """The path of them."""
        return f"{self.lake}/namespaces"

    def chain(self) -> ChainReader:
        """What is in the store."""
        return ChainReader(self.server.persistence)


async def create(side: Side, key: str, body: Json | None = None) -> httpx.Response:
    """Create a namespace."""
    headers = {"Idempotency-Key": key}
    return await side.http.post(side.namespaces, json=body or namespace(), headers=headers)


async def names(side: Side) -> list[str]:
    """The namespaces that there are."""
    return [each[0] for each in (await side.http.get(side.namespaces)).json()["namespaces"]]


async def get_config(side: Side) -> Json:
    """What a client is told before anything else."""
    params = {"warehouse": side.lake.rpartition("/")[2]}
    found: Json = (await side.http.get("/api/catalog/v1/config", params=params)).json()
    return found


def is_same(one: httpx.Response, other: httpx.Response) -> bool:
    """Whether two answers are the same."""
    return (one.status_code, one.content) == (other.status_code, other.content)


async def list_records(side: Side) -> set[ObjId]:
    """The keys that the store knows of."""
    store = side.server.persistence.store(SYSTEM_REALM)
    return {head.key.id for head in await store.scan_heads(RECORD, after=None, limit=1_000)}


async def all_noted(side: Side, before: set[ObjId]) -> None:
    """Until all records but those from before are final: some are so only a little after the answer."""
    store = side.server.persistence.store(SYSTEM_REALM)
    waiting = await list_records(side) - before
    async with asyncio.timeout(40):
        while waiting:
            found = [await store.fetch(RECORD, record_id) for record_id in waiting]
            waiting = {each.id for each in found if each is not None and each.value.state != "FINALIZED"}
            await asyncio.sleep(0.01)


async def lose_records(side: Side) -> None:
    """As the death of a machine may undo what was written relaxed."""
    store = side.server.persistence.store(SYSTEM_REALM)
    while heads := await store.scan_heads(RECORD, after=None, limit=1_000):
        await store.delete_each(heads)


async def abandon(sent: "asyncio.Task[httpx.Response]") -> None:
    """Nobody waits for the answer of a dead server."""
    sent.cancel()
    await asyncio.wait([sent])
