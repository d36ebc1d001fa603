"""The suite of leases runs, tiny, and says which promises it judges; not how fast."""

import asyncio

import pytest
from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import leases

from cynosure.delegation.store.port import Leased


def test_leases_are_measured_beside_independent_rows(postgres_url: str) -> None:
    options = Options({"tasks": "24", "workers": "3"})

    result = asyncio.run(run_suite("leases", options, rounds=1, warmups=0))

    assert {name: rounds[0].operations for name, rounds in result.candidates.items()} == {
        "postgres, leases": 24,
        "postgres, to the end": 72,
        "sqlite, leases": 24,
        "sqlite, to the end": 72,
        "postgres, independent rows": 24,
    }
    assert [promise.figure for promise in leases.promises(result)] == [
        "postgres, leases over postgres, independent rows, rate",
        "postgres, to the end over postgres, independent rows, rate",
    ]


def test_a_task_that_is_leased_twice_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from cynosure.delegation.store.objects import ObjectTaskStore

    honest = ObjectTaskStore.lease
    given: list[Leased] = []

    async def lease(store: ObjectTaskStore, worker: str, *, now_us: int, lease_us: int) -> Leased | None:
        taken = await honest(store, worker, now_us=now_us, lease_us=lease_us)
        if taken is not None:
            given.append(taken)
        elif len(given) == 4:
            given.append(given[0])
            return given[0]
        return taken

    monkeypatch.setattr(ObjectTaskStore, "lease", lease)
    options = Options({"tasks": "4", "workers": "1", "databases": "memory"})

    with pytest.raises(SystemExit, match="twice"):
        asyncio.run(run_suite("leases", options, rounds=1, warmups=0))
