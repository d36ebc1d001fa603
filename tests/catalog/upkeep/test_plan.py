"""The plan says what the next round does, whatever policies there are, and whoever changed what (I100)."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.upkeep.assess import Decision
from cynosure.catalog.upkeep.plan_maintenance import About, plan_maintenance
from cynosure.catalog.upkeep.scheduler import Rounds
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import BadInput, BadPageToken
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import make
from tests.catalog.upkeep.made import (
    COMPACTION,
    DEEP,
    EXPIRY,
    MANIFESTS,
    NS,
    ON_CATALOG,
    ON_NS,
    ON_T,
    ORPHANS,
    Kept,
    T,
    U,
    append,
    open_kept,
    policy,
)

TYPES = (COMPACTION, MANIFESTS, ORPHANS, EXPIRY)
CONFIGS = (
    {"schedule": "PT1H"},
    {"schedule": "*/30 * * * *", "window": "22:00-03:00"},
    {"schedule": "PT2H", "window_days": "thu,fri"},
    {"schedule": "PT1M", "min_input_files": 2, "min_manifests": 2, "max_snapshot_age_days": 0},
)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32))
def test_what_the_plan_says_is_what_the_next_round_orders(seed: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder), random.Random(seed)))


async def live(folder: Path, rng: random.Random) -> None:
    """Some days of a catalog."""
    async with open_kept(folder, concurrent=rng.choice([1, 2, 9])) as kept:
        pairs = [(each, target) for each in TYPES for target in (ON_CATALOG, ON_NS, ON_T)]
        for number, (policy_type, target) in enumerate(rng.sample(pairs, rng.randint(1, 6))):
            config = rng.choice(CONFIGS)
            await policy(kept.catalog, f"p{number}", policy_type, target, enable=rng.random() < 0.9, **config)
        for _ in range(6):
            await happen(kept, rng)
            planned = await kept.decisions()
            ordered = await kept.round()

            assert sorted(key for key, decision in planned.items() if decision is Decision.RUN) == sorted(
                ordered
            )
            assert all(
                decision is Decision.RUNNING
                for key, decision in (await kept.decisions()).items()
                if key in ordered
            )


async def happen(kept: Kept, rng: random.Random) -> None:
    await kept.clock.advance(rng.choice([60, 1800, 3600, 5 * 3600, 86_400]))
    if rng.random() < 0.6:
        await append(kept.catalog, rng.randint(1, 6), rng.choice([T, U]))
    if rng.random() < 0.7:
        await kept.end_all(rng.choice([TaskStatus.SUCCESS, TaskStatus.FAILURE]))


@pytest.mark.anyio
async def test_a_plan_in_pages_and_of_a_part(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=9) as kept:
        for number in range(3):
            await make(kept.catalog, Identifier(DEEP, f"more{number}"))
        await policy(kept.catalog, "o", ORPHANS, ON_CATALOG)
        await policy(kept.catalog, "e", EXPIRY, ON_CATALOG)
        whole = (await plan_maintenance(kept.catalog, ROOT, Paging())).entries

        found, token = [], None
        while True:
            page = await plan_maintenance(kept.catalog, ROOT, Paging(token=token, size=3))
            assert len(page.entries) <= 3
            assert page.is_complete
            found += page.entries
            token = page.next_token
            if token is None:
                break

        names = [(each.work.table.path, each.work.rule.task_type) for each in found]
        assert names == [(each.work.table.path, each.work.rule.task_type) for each in whole]
        assert len(names) == 10
        assert len(await kept.plan(About(NS))) == 10
        assert len(await kept.plan(About(DEEP))) == 8
        assert set(await kept.plan(About(NS, "t"))) == {
            ("ns.t", "ORPHAN_FILE_REMOVAL"),
            ("ns.t", "SNAPSHOT_EXPIRY"),
        }
        assert await kept.plan(About(("nowhere",))) == {}
        with pytest.raises(BadInput):
            await kept.plan(About((), "t"))
        first = await plan_maintenance(kept.catalog, ROOT, Paging(size=3))
        with pytest.raises(BadPageToken):
            await plan_maintenance(kept.catalog, ROOT, Paging(token=first.next_token), About(NS))


@pytest.mark.anyio
async def test_a_catalog_that_is_too_large_for_one_round_is_gone_through_in_several(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=9) as kept:
        await make(kept.catalog, Identifier(DEEP, "last"))
        await policy(kept.catalog, "o", ORPHANS, ON_CATALOG)

        first = await plan_maintenance(kept.catalog, ROOT, Paging(), most=1)
        deep = await plan_maintenance(kept.catalog, ROOT, Paging(), About(DEEP, "u"), most=1)
        small = kept._replace(rounds=Rounds(most=1))
        ordered = [await small.round() for _ in range(2)]

        assert ([str(each.work.table.path) for each in first.entries], first.is_complete) == (["ns.t"], False)
        assert [str(each.work.table.path) for each in deep.entries] == ["ns.deep.u"]
        assert [[table for table, _ in each] for each in ordered] == [["ns.t"], ["ns.deep.last", "ns.deep.u"]]


@pytest.mark.anyio
async def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await append(kept.catalog, 9)
        await policy(kept.catalog, "c", COMPACTION, ON_CATALOG)
        refs = await kept.directory.shared.persistence.backend.list_refs()

        first = await kept.plan()
        second = await kept.plan()

        assert first == second
        assert first["ns.t", "DATA_COMPACTION"][0] is Decision.RUN
        assert await kept.directory.shared.persistence.backend.list_refs() == refs
        assert kept.executor.orders == []
