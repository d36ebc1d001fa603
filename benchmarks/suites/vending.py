"""Credentials for clients: CPU of a load that gives some, of new ones, and requests to the token service.

In process, on SQLite, with a real S3 server that `scripts/services` runs. One operation is:

- *load*: a table, without access to its files
- *load with credentials*: the same and credentials that are in memory, as far as the bytes of the answer
- *new credentials*: asked of the token service, for another principal each time
- *crowd*: 64 loads at once of a table that nobody has credentials for; *requests* are those to the service

    while read -r each; do export "$each"; done < <(scripts/services env)
    ./dev bench vending --set server=minio --set right=TABLE_READ_DATA

Heads are read ahead of every load, as the server does it when a request comes in.

A maintainer must not break: both kinds of load are by the same caller, whose rights are granted on the table.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count as counting
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, median
from benchmarks.results_file import Result
from cynosure.api.iceberg.access import AccessAnswers
from cynosure.auth.caller import Caller
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.file_access.giving import plain_access
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.load_table import load_table, load_table_for_data
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.storage.access.ports import Scope, Subject
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.vendor import S3Vendor, client_config
from cynosure.storage.access.vending import Vending
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.config import S3Storage, S3Sts
from cynosure.storage.location import Location
from cynosure.storage.opened import Storage
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Request, Respond
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from cynosure.testing.small_access import People, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA, open_directory_in

Once = Callable[[], Awaitable[object]]
TABLE: Final = Identifier(("sales",), "orders")
VENDED: Final = Delegation(vended=True)
CROWD: Final = 64
LOAD, CACHED, NEW = "load", "load with credentials", "new credentials"
TOGETHER: Final = f"crowd of {CROWD}"
BOUND_US: Final = 20.0


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    loads, asked = options.get("loads", 5_000), options.get("new", 50)
    server = _find_server(options.get("server", "seaweedfs"))
    right = options.get("right", "TABLE_WRITE_DATA")
    with tempfile.TemporaryDirectory() as folder:
        async with _open_catalog(Path(folder), server, right) as (catalog, caller):
            answers = AccessAnswers()
            numbers = counting(1)
            vending = catalog.storage.vending
            assert vending is not None
            principals = realm_reference(DEFAULT_REALM, "principals")
            heads = (principals, principals, *catalog.likely_references)

            async def load() -> None:
                catalog.shared.persistence.heads.read_ahead(heads)
                answer = await load_table(catalog, caller, TABLE)
                answer.load_body(answers.tell(plain_access(catalog), "lake", TABLE).json)

            async def load_with_credentials() -> None:
                catalog.shared.persistence.heads.read_ahead(heads)
                loaded = await load_table_for_data(catalog, caller, TABLE, delegation=VENDED)
                assert loaded.access.vended is not None
                loaded.answer.load_body(answers.tell(loaded.access, "lake", TABLE).json)

            async def ask_for_new() -> None:
                scope = Scope((catalog.base.child("orders"),), is_writable=False)
                await vending.vend(scope, Subject("default", "somebody", next(numbers), "lake", str(TABLE)))

            yield {
                LOAD: _measuring(load, loads),
                CACHED: _measuring(load_with_credentials, loads),
                NEW: _measuring(ask_for_new, asked),
                TOGETHER: await _crowding(catalog, caller, server),
            }


@asynccontextmanager
async def _open_catalog(
    folder: Path, server: S3Server, right: str
) -> AsyncIterator[tuple[OpenCatalog, Caller]]:
    base = server.fresh_location("bench")
    config = S3Storage(
        allowed_locations=(base,),
        region=server.region,
        endpoint=server.endpoint,
        path_style_access=True,
        sts=S3Sts(role_arn=server.role_arn),
    )
    async with open_directory_in(folder, url=f"sqlite:{folder / 'store.db'}") as directory:
        entity = await create_catalog(
            directory, ROOT, NewCatalog(name="lake", base_location=base, storage=config)
        )
        # Metadata files stay in memory: what is measured writes none.
        files = MemoryFileIO([Location.parse(base)], SystemClock())
        storage = Storage(files, client_config(config), _open_vending(config, server))
        catalog = OpenCatalog(DEFAULT_REALM, entity, directory.shared, storage)
        await create_namespace(catalog, ROOT, TABLE.namespace, {})
        await create_table(
            catalog, ROOT, CreateTable(TABLE.namespace, TABLE.name, SCHEMA, location=f"{base}/orders")
        )
        people = People(directory)
        await people.root()
        rights = on_table(TABLE, Privilege.TABLE_READ_PROPERTIES, Privilege[right])
        yield catalog, await people.add("ann", catalog, *rights)


def _open_vending(config: S3Storage, server: S3Server) -> Vending:
    keys = StaticKeys(S3Session(server.access_key_id, Secret(server.secret_access_key)))
    return Vending(S3Vendor(config, keys, StorageSettings(), SystemClock()), SystemClock(), kind="s3")


async def _crowding(catalog: OpenCatalog, caller: Caller, server: S3Server) -> Round:
    storage, config = catalog.storage, catalog.entity.storage
    assert isinstance(config, S3Storage)

    async def run(meter: Meter) -> None:
        asked: list[int] = []

        def note(request: Request) -> bool:
            asked.append(request.number)
            return False

        async with FaultProxy.to_url(server.endpoint) as proxy:
            proxy.add(Respond(), when=note)
            fresh = _open_vending(replace(config, sts=replace(config.sts, endpoint=proxy.url)), server)
            crowded = OpenCatalog(
                DEFAULT_REALM, catalog.entity, catalog.shared, replace(storage, vending=fresh)
            )
            with meter.measuring():
                await asyncio.gather(
                    *(load_table_for_data(crowded, caller, TABLE, delegation=VENDED) for _ in range(CROWD))
                )
        meter.count(operations=CROWD, requests=len(asked))
        meter.note("requests", len(asked))

    return run


def _find_server(name: str) -> S3Server:
    found = find_s3_servers().get(name)
    if found is None:
        sys.exit(f"bench: there is no S3 server {name}; run scripts/services start and export its env")
    return found


def _measuring(once: Once, count: int) -> Round:
    async def run(meter: Meter) -> None:
        for _ in range(min(count, 20)):
            await once()
        with meter.measuring():
            for _ in range(count):
                await once()
        meter.count(operations=count)

    return run


def promises(result: Result) -> list[Promise]:
    """That credentials in memory cost next to nothing, and a crowd one request."""
    found: list[Promise] = []
    if has(result, LOAD, CACHED):
        more_us = median(result, CACHED, cpu_us) - median(result, LOAD, cpu_us)
        found.append(Promise("CPU of credentials from memory on top of a load, µs", "≤", BOUND_US, more_us))
    if has(result, TOGETHER):
        most = max(figures.notes["requests"] for figures in result.candidates[TOGETHER])
        found.append(Promise(f"requests to the token service for {CROWD} loads at once", "≤", 1, most))
    return found
