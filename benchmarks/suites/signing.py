"""Signatures for clients without credentials: CPU of one request, from what it asks to what it may send.

In process, with the names and keys of Amazon, to which nothing is sent. One operation is:

- *read and sign*: what a request means, and its signature, without any catalog
- *operation*: the same for a table, as the server does it: name, rights and locations of now, for a caller
  whose right is granted on the table, on SQLite
- *bulk deletion*: of 250 keys, as Iceberg's Java client sends it

    ./dev bench signing

A maintainer must not break: the requests are those that Iceberg's clients send, with all their headers.
"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, median
from benchmarks.results_file import Result
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.sign_request import sign_request
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.access.ports import Scope, StoreRequest, Subject
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.signer import S3Signer
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.config import S3Storage, S3Sts
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storage
from cynosure.storage.settings import StorageSettings
from cynosure.testing.small_access import People, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA, open_directory_in

Once = Callable[[int], Awaitable[object]]
BASE: Final = "s3://lake/warehouse"
STORE: Final = "https://lake.s3.eu-central-1.amazonaws.com"
CONFIG: Final = S3Storage(allowed_locations=(BASE,), region="eu-central-1", sts=S3Sts(is_unavailable=True))
TABLE: Final = Identifier(("sales",), "orders")
BOUND_US: Final = 300.0
READ, OPERATION, DELETION = "read and sign", "operation", "bulk deletion of 250"
_HEADERS: Final = {
    "amz-sdk-invocation-id": ["294c5643-0a5c-6cc6-2569-bfdebffd97e1"],
    "amz-sdk-request": ["attempt=1; max=6"],
    "Range": ["bytes=1048576-2097151"],
    "User-Agent": ["s3fileio aws-sdk-java/2.42.0 md/io#sync md/http#Apache5 lang/java#17"],
    "x-amz-te": ["append-md5"],
}


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    count = options.get("requests", 2_000)
    signer = S3Signer(
        CONFIG, StaticKeys(S3Session("AKIAEXAMPLE", Secret("example"))), StorageSettings(), SystemClock()
    )
    scope = Scope((Location.parse(f"{BASE}/orders"),), is_writable=True)
    subject = Subject("default", "ann", 1, "lake", str(TABLE))

    async def read_and_sign(number: int) -> None:
        await signer.inspect(_get(number)).sign(scope, subject)

    async def delete_many(number: int) -> None:
        await signer.inspect(_deletion(number)).sign(scope, subject)

    with tempfile.TemporaryDirectory() as folder:
        async with _open_catalog(Path(folder), signer) as operate:
            yield {
                READ: _measuring(read_and_sign, count),
                OPERATION: _measuring(operate, count),
                DELETION: _measuring(delete_many, max(1, count // 50)),
            }


@asynccontextmanager
async def _open_catalog(folder: Path, signer: S3Signer) -> AsyncIterator[Once]:
    async with open_directory_in(folder, url=f"sqlite:{folder / 'store.db'}") as directory:
        wanted = NewCatalog(name="lake", base_location=BASE, storage=CONFIG)
        entity = await create_catalog(directory, ROOT, wanted)
        files = MemoryFileIO([Location.parse(BASE)], SystemClock())
        catalog = OpenCatalog(DEFAULT_REALM, entity, directory.shared, Storage(files, signer=signer))
        await create_namespace(catalog, ROOT, TABLE.namespace, {})
        await create_table(
            catalog, ROOT, CreateTable(TABLE.namespace, TABLE.name, SCHEMA, location=f"{BASE}/orders")
        )
        people = People(directory)
        await people.root()
        ann = await people.add("ann", catalog, *on_table(TABLE, Privilege.TABLE_READ_DATA))

        async def operate(number: int) -> None:
            await sign_request(catalog, ann, TABLE, _get(number))

        yield operate


def _get(number: int) -> StoreRequest:
    # Another file each time: nothing of a request is remembered, and must not seem to be.
    uri = f"{STORE}/warehouse/orders/data/day%3D2026-11-15/{number:05d}-0-4c1b2c9e.parquet"
    return StoreRequest("GET", uri, _HEADERS, CONFIG.region)


def _deletion(number: int) -> StoreRequest:
    keys = [f"warehouse/orders/data/day=2026-11-15/{number:05d}-{each}.parquet" for each in range(250)]
    body = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return StoreRequest("POST", f"{STORE}/?delete", _HEADERS, CONFIG.region, f"<Delete>{body}</Delete>")


def _measuring(once: Once, count: int) -> Round:
    async def run(meter: Meter) -> None:
        for number in range(min(count, 20)):
            await once(number)
        with meter.measuring():
            for number in range(count):
                await once(number)
        meter.count(operations=count)

    return run


def promises(result: Result) -> list[Promise]:
    """That a signature costs little, also with all that is asked of the catalog."""
    return [
        Promise(f"{name}: CPU, µs", "≤", BOUND_US, median(result, name, cpu_us))
        for name in (READ, OPERATION)
        if has(result, name)
    ]
