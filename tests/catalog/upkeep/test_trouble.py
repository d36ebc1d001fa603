"""Services that are away, servers that die or come at once, files that cannot be read (I100)."""

import asyncio
from pathlib import Path

import pytest

from cynosure.auth.committing import commit_part
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.reports import reports_committer
from cynosure.catalog.upkeep.assess import Decision
from cynosure.catalog.upkeep.runs import INDEX, load_known, upkeep_key
from cynosure.catalog.upkeep.scheduler import Rounds
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, Unavailable
from cynosure.persistence.commit import Prepared, View
from cynosure.testing.small_catalog import ROOT, directory_on, open_directory_in
from tests.catalog.manifests.writing import load
from tests.catalog.upkeep.made import (
    COMPACTION,
    ON_NS,
    ON_T,
    ORPHANS,
    SYSTEM,
    Kept,
    T,
    U,
    append,
    open_kept,
    policy,
)

pytestmark = pytest.mark.anyio

COMPACT, REMOVE = TaskType.DATA_COMPACTION, TaskType.ORPHAN_FILE_REMOVAL


async def test_a_task_that_the_service_does_not_know_is_lost(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT1H")
        await kept.round()
        kept.executor.forget(kept.executor.orders[0].task_id)

        assert await kept.round() == []
        assert [run.outcome for run in await kept.runs()] == ["LOST"]
        await kept.clock.advance(3600)
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_a_service_that_is_away_is_asked_again(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T)
        kept.executor.refusal = Unavailable("away")
        with pytest.raises(Unavailable):
            await kept.round()
        kept.executor.refusal = None

        assert await kept.round() == [("ns.t", REMOVE)]
        assert len({order.task_id for order in kept.executor.orders}) == 1
        kept.executor.refusal = Unavailable("away")
        assert (await kept.decisions())["ns.t", REMOVE] is Decision.RUNNING, "as far as is known"
        assert [run.is_under_way for run in await kept.runs()] == [True]


async def test_what_the_service_refuses_waits_until_it_is_due_again(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT1H")
        kept.executor.refusal = BadInput("no", field="x", fix="y")
        await kept.round()
        kept.executor.refusal = None

        assert await kept.round() == []
        decision, why = (await kept.plan())["ns.t", REMOVE]
        assert (decision, "refuses it: no" in why) == (Decision.NOT_DUE, True)
        await kept.clock.advance(3600)
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_a_server_that_dies_before_it_records_orders_one_task(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        path = await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT1H")
        table = await load(kept.catalog)
        await kept.round()
        await forget(kept)
        # Meanwhile the name and the policy change, so that the order is another one under the same id.
        await rename_table(kept.catalog, ROOT, T, Identifier(("ns",), "renamed"))
        content = '{"enable":true,"config":{"schedule":"PT1H","max_orphan_file_age_in_days":9}}'
        await update_policy(kept.catalog, ROOT, path, PolicyUpdate(content=content))
        await kept.clock.advance(600)

        assert await kept.round() == [("ns.renamed", REMOVE)]
        assert len({order.task_id for order in kept.executor.orders}) == 1
        assert [run.task_id for run in await kept.runs()] == [kept.executor.orders[0].task_id]
        assert (await load_known(kept.catalog)).keys() == {(table.state.id, REMOVE)}


async def forget(kept: Kept) -> None:
    """As if what was done was never recorded."""
    keys = [upkeep_key(*each) for each in await load_known(kept.catalog)]

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {INDEX: dict.fromkeys(keys)})

    await commit_part(reports_committer(kept.catalog), SYSTEM, "forget", prepare)


async def test_two_servers_at_once_order_one_task(tmp_path: Path, postgres_schema_url: str) -> None:
    async with open_kept(tmp_path, url=postgres_schema_url, clock=SystemClock()) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_NS)
        settings = kept.directory.shared.delegation
        async with open_directory_in(tmp_path, url=postgres_schema_url, delegation=settings) as directory:
            directory.shared.use_executor(kept.executor)
            other = await directory.open(kept.catalog.realm, "lake")
            await asyncio.gather(
                *(Rounds().keep_up(each, SYSTEM) for each in (kept.catalog, other) for _ in range(3))
            )

        assert len({order.task_id for order in kept.executor.orders}) == 2
        assert len(await kept.runs()) == 2


async def test_damaged_files_do_not_keep_others_waiting(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=5) as kept:
        await append(kept.catalog, 2)
        await append(kept.catalog, 2, U)
        await policy(kept.catalog, "p", COMPACTION, ON_NS, schedule="PT1H", min_input_files=1)
        snapshot = (await load(kept.catalog)).metadata.find_current_snapshot()
        assert snapshot is not None
        path = Path(str(snapshot.manifest_list).removeprefix("file://"))
        path.write_bytes(b"no manifest list")

        async with directory_on(
            kept.directory.shared.persistence, tmp_path, delegation=kept.directory.shared.delegation
        ) as directory:
            # Another process, which has nothing in memory.
            directory.shared.use_executor(kept.executor)
            cold = kept._replace(directory=directory, catalog=await directory.open("default", "lake"))
            assert (await cold.decisions())["ns.t", COMPACT] is Decision.FAILED
            assert await cold.round() == [("ns.deep.u", COMPACT)]
            assert (await cold.decisions())["ns.t", COMPACT] is Decision.NOT_DUE, "until it is due again"
