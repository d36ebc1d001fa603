"""What counts for which table, found for all tables at once, is what is found for each."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.list_applicable_policies import list_applicable_policies, place_of
from cynosure.catalog.policies.maintenance_config import POLICY_TASKS
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.upkeep.survey import Work, survey
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.tables import make
from tests.catalog.upkeep.made import EXPIRY, NS, ORPHANS, policy

NAMESPACES = [NS, ("ns", "a"), ("ns", "a", "b"), ("ns", "a!"), ("nt",), ("z",)]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_what_counts_for_all_is_what_counts_for_each(seed: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), random.Random(seed)))


async def compare(folder: Path, rng: random.Random) -> None:
    async with open_directory_in(folder) as directory:
        catalog = await make_catalog(directory, folder)
        for namespace in NAMESPACES:
            await create_namespace(catalog, ROOT, namespace, {})
        tables = [
            Identifier(namespace, f"t{number}")
            for namespace in NAMESPACES
            for number in range(rng.randint(0, 3))
        ]
        for table in tables:
            await make(catalog, table)
        await attach_some(catalog, tables, rng)
        state = await catalog.read()

        found = await survey(catalog, state)
        some: list[Work] = []
        at: bytes | None = b""
        while at is not None:
            part = await survey(catalog, state, start=at, most=1)
            some += part.works
            at = part.next_key

        expected = {(table, name) for table in tables for name in await counting(catalog, table)}
        assert {(work.table.path, work.attached.name) for work in found.works} == expected
        assert len(found.works) == len(expected)
        assert found.next_key is None
        assert [(work.table.path, work.attached.name) for work in some] == [
            (work.table.path, work.attached.name) for work in found.works
        ]


async def attach_some(catalog: OpenCatalog, tables: list[Identifier], rng: random.Random) -> None:
    targets = [
        AttachTo("catalog"),
        *(AttachTo("namespace", namespace) for namespace in NAMESPACES),
        *(AttachTo("table-like", (*table.namespace, table.name)) for table in tables),
    ]
    pairs = [(each, kind) for each in targets for kind in (ORPHANS, EXPIRY)]
    # Seldom the catalog: below it nothing would be left out.
    chosen = [pair for pair in pairs if rng.random() < (0.1 if pair[0].type == "catalog" else 0.25)]
    for number, (target, kind) in enumerate(chosen):
        await policy(catalog, f"p{number}", kind, target)


async def counting(catalog: OpenCatalog, table: Identifier) -> list[str]:
    place = place_of(catalog, table.namespace, table.name)
    page = await list_applicable_policies(catalog, ROOT, place, Paging())
    return [each.attached.name for each in page.policies if each.attached.policy.type in POLICY_TASKS]
