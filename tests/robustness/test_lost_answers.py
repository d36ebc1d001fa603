"""The database applies a swap and its answer never arrives: nobody is told wrongly, nothing is done twice."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.common.errors import OutcomeUnknown
from cynosure.persistence.commit import AlreadyCommitted, Committed
from cynosure.persistence.settings import PersistenceSettings
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, Fault, LoseAnswer, Request, executes
from cynosure.testing.storm.ledger import Done, Ledger, read_ledger
from cynosure.testing.storm.verify import verify_storm
from cynosure.testing.storm.writers import MAIN, Storm, blow, open_storm, read_counts
from cynosure.testing.workload import Items

pytestmark = pytest.mark.anyio

IMPATIENT = PersistenceSettings(commit_deadline=timedelta(seconds=3))


def moves_a_reference(request: Request) -> bool:
    """Alone, or as the end of a turn; not the greeting of a new session, which speaks of commits too."""
    return executes("refs SET head")(request) or "COMMIT" in (each.strip("; ") for each in request.statements)


@pytest.mark.parametrize("has_keys", [False, True])
async def test_a_storm_survives_answers_that_get_lost_all_the_time(
    postgres_schema_url: str,
    tmp_path: Path,
    rng: random.Random,
    scale: Callable[[int, int], int],
    has_keys: bool,
) -> None:
    """I1, I3, I4, I10."""
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    async with FaultProxy.to_url(postgres_schema_url, rng=rng) as proxy:
        async with open_storm(proxy.url) as persistence:
            lost = proxy.add(LoseAnswer(), when=moves_a_reference, times=None, chance=0.2)
            cut = proxy.add(CutRequest(after_bytes=100), when=moves_a_reference, times=None, chance=0.1)
            storm = asyncio.ensure_future(
                blow(persistence, ledger, Storm("s", writers=8, has_keys=has_keys), rng)
            )
            while lost.hits + cut.hits < scale(20, 600):
                await asyncio.sleep(0.05)
                assert not storm.done()
            storm.cancel()
            with suppress(asyncio.CancelledError):
                await storm
            assert persistence.counters.unknown > 0
            proxy.clear()

        async with open_storm(postgres_schema_url) as persistence:
            verdict = await verify_storm(persistence, read_ledger(path))
    assert verdict.problems == ()
    assert verdict.unknown == 0  # Each was settled, because the database can be asked again.
    assert verdict.acknowledged > verdict.refused


@pytest.mark.parametrize(
    ("fault", "is_applied"), [(LoseAnswer(), True), (CutRequest(after_bytes=100), False)]
)
async def test_an_outcome_that_stays_unknown_is_said_to_be_and_its_key_settles_it(
    postgres_schema_url: str, fault: Fault, is_applied: bool
) -> None:
    """I1, I3, I10."""
    async with (
        FaultProxy.to_url(postgres_schema_url) as proxy,
        open_storm(proxy.url, IMPATIENT) as persistence,
    ):
        items, committer = Items(persistence.ids), persistence.committer(MAIN)
        await committer.commit(items.add("before"))
        # From here on every attempt to move the reference fails, and the database cannot be reached anew.
        proxy.add(fault, when=moves_a_reference, times=None)
        proxy.refuse(1_000_000)

        with pytest.raises(OutcomeUnknown) as told:
            await committer.commit(items.add("unclear", key_hash="k1"))
        proxy.clear()
        again = await committer.commit(items.add("unclear", key_hash="k1"))

        assert told.value.fix
        assert isinstance(again, AlreadyCommitted if is_applied else Committed)
        assert await read_counts((await committer.read()).state) == {"before": 1, "unclear": 1}


async def test_what_waits_behind_an_unclear_swap_is_committed_when_the_database_is_back(
    postgres_schema_url: str, tmp_path: Path, rng: random.Random
) -> None:
    """I3, I4."""
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    async with FaultProxy.to_url(postgres_schema_url) as proxy:
        async with open_storm(proxy.url) as persistence:
            storm = asyncio.ensure_future(blow(persistence, ledger, Storm("s"), rng))
            for _ in range(3):
                lost = proxy.lose_answer_after(moves_a_reference)
                await lost.wait_done()
                await proxy.stop()
                await asyncio.sleep(0.1)
                done = sum(isinstance(event, Done) for event in read_ledger(path))
                await proxy.start()
                while sum(isinstance(event, Done) for event in read_ledger(path)) == done:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            storm.cancel()
            with suppress(asyncio.CancelledError):
                await storm
        async with open_storm(postgres_schema_url) as persistence:
            verdict = await verify_storm(persistence, read_ledger(path))
    assert verdict.problems == ()
    # Whoever asked while the database was away was refused; nobody was left in doubt.
    assert verdict.unknown == 0
