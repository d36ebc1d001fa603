"""A store with any number of tables, made by bulk load, for suites that measure the whole path.

Every table is an entity of about 2 KB with an entry in each of a catalog's three indexes, as
`cynosure.testing.workload` would have made it one by one.

A maintainer must not break: what is measured afterwards is production code on an ordinary store; only the
way in is short.
"""

import asyncio
import os
import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import msgspec

from benchmarks.suites.index import table_name
from cynosure.persistence.bulk import begin_bulk
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.objects import ObjRef, TypeRegistry
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference, ensure_reference
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import Backend, CatalogId
from cynosure.persistence.store import NewObject
from cynosure.testing import workload
from cynosure.testing.workload import Items

MAIN = catalog_reference(DEFAULT_REALM, CatalogId("bench"), "main")
TYPES = TypeRegistry([*OBJECT_TYPES, *workload.OBJECT_TYPES])
PAYLOAD_BYTES = 2048
_FED_AT_ONCE = 10_000
_CHANGED = 500
_DEFAULTS = PersistenceSettings()


def table_metadata() -> bytes:
    """Content of an entity: JSON about a table, which compresses as such things do."""
    chance = random.Random(1)
    types = ["long", "string", "timestamptz", "decimal(18,2)", "double"]
    fields = [
        {"id": number, "name": f"column_{chance.getrandbits(24):x}", "type": chance.choice(types)}
        for number in range(PAYLOAD_BYTES // 32)
    ]
    return msgspec.json.encode({"fields": fields})[:PAYLOAD_BYTES]


def incompressible() -> bytes:
    """The most that an entity of this size can cost in bytes."""
    return random.Random(1).randbytes(PAYLOAD_BYTES)


def keys_of(total: int) -> list[bytes]:
    """The names of all tables of a store of this size."""
    return [encode_key(*table_name(number, total)) for number in range(total)]


@asynccontextmanager
async def open_store(
    url: str,
    settings: PersistenceSettings = _DEFAULTS,
    *,
    wrap: Callable[[Backend], Backend] = lambda backend: backend,
) -> AsyncIterator[Persistence]:
    """A store as a server opens it."""
    backend = wrap(open_backend(url))
    async with open_persistence_on(backend, settings, initialise=True, types=TYPES) as persistence:
        await ensure_reference(backend, MAIN, persistence.clock)
        yield persistence


@asynccontextmanager
async def fresh_url(scheme: str, directory: str = "") -> AsyncIterator[str]:
    """The URL of an empty store, removed afterwards. `directory` decides which disk SQLite writes to."""
    if scheme == "postgres":
        server = os.environ.get("CYNOSURE_TEST_POSTGRES")
        if not server:
            raise SystemExit("bench: PostgreSQL is not running: use ./dev bench, or scripts/services start")
        schema = f"bench_{uuid.uuid4().hex[:16]}"
        try:
            yield f"{server}?schema={schema}"
        finally:
            connection = await asyncpg.connect(server)
            await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            await connection.close()
    elif scheme == "sqlite":
        with TemporaryDirectory(prefix="cynosure-bench-", dir=directory or None) as place:
            yield f"sqlite:{Path(place) / 'store.db'}"
    else:
        yield f"{scheme}:bench-{uuid.uuid4().hex}"


@asynccontextmanager
async def kept_url(total: int, directory: str = "") -> AsyncIterator[str]:
    """The URL of a SQLite store with tables. In `directory` it is kept: a million tables take minutes."""
    with TemporaryDirectory(prefix="cynosure-bench-") as temporary:
        path = Path(directory or temporary) / f"tables-{total}.db"
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            unfinished.unlink(missing_ok=True)
            async with open_store(f"sqlite:{unfinished}") as persistence:
                await load_tables(persistence, total, incompressible())
                await _change_some(persistence)
            unfinished.rename(path)
        yield f"sqlite:{path}"


async def _change_some(persistence: Persistence) -> None:
    """Create and rename, so that all three indexes hold recent changes, as those of a used catalog do."""
    items, commit = Items(persistence.ids, payload=incompressible()), persistence.committer(MAIN).commit
    for batch in range(0, _CHANGED, 100):
        names = [f"created_{batch + number}" for number in range(100)]
        await asyncio.gather(*(commit(items.create(name, location=f"s3://new/{name}")) for name in names))
        await asyncio.gather(*(commit(items.rename(name, f"renamed_{name}")) for name in names[::2]))


async def load_tables(persistence: Persistence, total: int, payload: bytes) -> None:
    """Fill the empty reference `MAIN` with tables."""
    ids, bulk = persistence.ids, await begin_bulk(persistence, MAIN)
    names: list[tuple[bytes, bytes]] = []
    by_id: list[tuple[bytes, bytes]] = []
    locations: list[tuple[bytes, bytes]] = []
    for number in range(total):
        name = table_name(number, total)
        key, location = encode_key(*name), f"s3://lakehouse-prod/warehouse/{'/'.join(name)}"
        item = workload.Item(stable_id=ids.next(), location=location, payload=payload)
        new = NewObject(workload.ITEM, ids.next(), item)
        await bulk.write([new])
        stable = encode_id_key(item.stable_id)
        names.append((key, ObjRef(new.id, workload.ITEM.name).pack()))
        by_id.append((stable, key))
        locations.append((encode_key(*location.split("/")[2:]), stable))
    for index, entries in (("names", names), ("ids", by_id), ("locations", locations)):
        entries.sort()
        for at in range(0, total, _FED_AT_ONCE):
            await bulk.feed(index, entries[at : at + _FED_AT_ONCE])
        entries.clear()
    await bulk.commit("bench", "load", [])
