"""Operations of a catalog with few and with many tables: CPU, rows and bytes of create, load, commit, list.

In process, on SQLite, with a catalog made by bulk import. One operation is: *create* a table in any of the
namespaces, which scatters over the indexes; *create together* the same, all of a round in one namespace;
*load* one of 500 tables that are in memory; *load cold* the same with empty caches; *commit* one property to
one of 500 tables; *list* one page of 100 names. Rows and bytes are those handed to the database, the
reference's own row among them; a request is one read of the database.

    ./dev bench scale --set sizes=1000,1000000 --set directory=SOMEWHERE      (kept there for the next run)

A maintainer must not break: rows, bytes and reads are counted at the backend, below everything; and every
size is asked for as many distinct tables, so that this is about the catalog and not about caches.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, median
from benchmarks.results_file import Result
from benchmarks.suites.store import CountingBackend
from benchmarks.synthetic_catalog import identifier_of, make_schema, open_filled, set_property
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.table_changes import TableChange
from cynosure.testing.small_catalog import ROOT

DISTINCT = 500
_PAGE = 100
_numbers = count(1)

Operation = Callable[[Identifier], Awaitable[object]]


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    sizes = [int(size) for size in options.get("sizes", "1000,1000000").split(",")]
    directory, writes = options.get("directory", ""), options.get("writes", 200)
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for size in sizes:
            catalog = await stack.enter_async_context(
                open_filled(size, directory, backend_on=CountingBackend)
            )
            counted = catalog.shared.persistence.backend
            assert isinstance(counted, CountingBackend)
            chance = random.Random(size)
            tables = [identifier_of(chance.randrange(size), size) for _ in range(DISTINCT)]
            for name, operation in _operations(catalog).items():
                chosen = tables[:writes] if name in ("create", "commit") else tables
                candidates[f"{name}, {size}"] = _measuring(catalog, counted, operation, chosen, name)
            create = _operations(catalog)["create"]
            candidates[f"create together, {size}"] = _measuring(
                catalog, counted, create, [chance.choice(tables)] * writes, "create"
            )
        yield candidates


def _operations(catalog: OpenCatalog) -> dict[str, Operation]:
    schema = make_schema()

    async def create(table: Identifier) -> None:
        name = f"new_{next(_numbers)}_{random.getrandbits(40):x}"
        await create_table(catalog, ROOT, CreateTable(table.namespace, name, schema))

    async def load(table: Identifier) -> None:
        (await load_table(catalog, ROOT, table)).load_body()

    async def commit(table: Identifier) -> None:
        await commit_table(catalog, ROOT, TableChange(table, [], set_property(str(next(_numbers)))))

    async def list_page(table: Identifier) -> None:
        await list_tables(catalog, ROOT, table.namespace, Paging(token="", size=_PAGE))

    async def load_cold(table: Identifier) -> None:
        catalog.shared.persistence.cache.clear()
        catalog.shared.tables.clear()
        await load(table)

    return {"create": create, "load": load, "load cold": load_cold, "commit": commit, "list": list_page}


def _measuring(
    catalog: OpenCatalog,
    counted: CountingBackend,
    operation: Operation,
    tables: Sequence[Identifier],
    name: str,
) -> Round:
    async def run(meter: Meter) -> None:
        if name in ("load", "commit", "list"):
            for table in tables:
                await (operation(table) if name == "list" else load_table(catalog, ROOT, table))
        counted.updates.clear()
        fetches = counted.fetches
        with meter.measuring():
            for table in tables:
                await operation(table)
        written = counted.updates
        meter.count(
            operations=len(tables),
            rows=sum(rows for rows, _ in written),
            bytes=sum(size for _, size in written),
            requests=counted.fetches - fetches,
        )

    return run


def promises(result: Result) -> list[Promise]:
    """That it hardly matters how many tables there are."""
    found: list[Promise] = []
    sizes = sorted({int(name.rpartition(", ")[2]) for name in result.candidates})
    if len(sizes) < 2:
        return found
    few, many = sizes[0], sizes[-1]
    measured: dict[str, Callable[[Figures], float]] = {
        "CPU": cpu_us,
        "rows": lambda each: each.rows / each.operations,
        "bytes": lambda each: each.bytes / each.operations,
    }
    for name in ("create", "create together", "load", "load cold", "commit", "list"):
        if not has(result, f"{name}, {few}", f"{name}, {many}"):
            continue
        for figure, of in measured.items():
            before, after = median(result, f"{name}, {few}", of), median(result, f"{name}, {many}", of)
            if before:
                label = f"{name}: {figure} at {many:,} over {few:,} tables"
                found.append(Promise(label, "≤", 1.5, after / before))
    return found
