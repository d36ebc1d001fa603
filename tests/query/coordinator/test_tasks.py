"""`system.runtime.tasks`: what runs where, for whom it is, and for nobody under a policy (I105, I110)."""

import asyncio
from typing import Any

import pytest

from cynosure.query.coordinator.runtime import StatementTasks, tasks_table, workers_table
from cynosure.query.coordinator.service import StatementService
from cynosure.query.coordinator.statement import State
from cynosure.query.engine import FragmentReport, RunningFragment, WorkerInfo
from cynosure.query.settings import QuerySettings
from cynosure.testing.small_engine import SmallEngine
from tests.query.coordinator.asking import finish, nothing, open_service, request
from tests.query.governed_world import World, orders

pytestmark = pytest.mark.anyio

WORKERS = [WorkerInfo(f"host/{at}", is_healthy=True) for at in range(2)]
DONE = FragmentReport("f0", True, 7, 70, worker="host/0", bytes=700, attempt=0)
FAILED = FragmentReport("f1", False, 9, 0, worker="host/0", bytes=90, attempt=0)
AGAIN = RunningFragment("f1", "host/1", 1, 11, 110, 1_100)


def rows(state: State, fragments: list[FragmentReport | str], running: Any) -> list[tuple[Any, ...]]:
    return [each[1:] for each in tasks_table([StatementTasks("q", state, fragments, running)]).rows]


def test_a_fragment_is_shown_by_who_reads_it_now_else_by_how_it_ended_else_as_waiting():
    assert rows(State.RUNNING, [DONE, FAILED, "f2"], [AGAIN]) == [
        ("f0", "host/0", 0, "FINISHED", 7, 70, 700),
        ("f1", "host/1", 1, "RUNNING", 11, 110, 1_100),
        ("f2", None, None, "QUEUED", None, None, None),
    ]
    assert rows(State.RUNNING, [FAILED], []) == [("f1", "host/0", 0, "FAILED", 9, 0, 90)]


def test_a_fragment_that_two_places_of_a_plan_read_is_shown_for_both():
    twice = [RunningFragment("f2", f"host/{at}", 0, 1, 1, 1) for at in range(2)]
    assert [each[1] for each in rows(State.RUNNING, ["f2"], twice)] == ["host/0", "host/1"]


@pytest.mark.parametrize(
    ("state", "running", "shown"),
    [
        (State.PLANNING, [], "QUEUED"),
        (State.RUNNING, [], "QUEUED"),
        # Iceberg's own reader: that it reads is all that is known.
        (State.RUNNING, None, "RUNNING"),
        (State.FINISHED, [], "CANCELED"),
        (State.FAILED, None, "CANCELED"),
    ],
)
def test_what_nobody_said_anything_of(state: State, running: Any, shown: str):
    assert rows(state, ["f2"], running) == [("f2", None, None, shown, None, None, None)]


def list_tasks(service: StatementService, session: Any) -> list[tuple[Any, ...]]:
    """As the table has them."""
    found = service._runtime_table(session.owner, "tasks")
    assert found is not None
    return list(found.rows)


async def test_ones_own_statements_while_they_run_and_nothing_under_a_policy(world: World):
    table = await world.make_table()
    for start in (0, 3):
        await world.append(table, orders(start, 3, "EU"))
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    ann, bob = await world.open("ann"), await world.open("bob")
    spark = SmallEngine(nothing, name="spark-isolated", workers=WORKERS)
    spark.held, spark.fragments = asyncio.Event(), {}
    settings = QuerySettings(distribute_above=1)
    async with open_service(SmallEngine(nothing), settings=settings, spark=spark, cluster=spark) as service:
        infos = []
        for session in (ann, bob):
            info = await service.submit(session, request(f"SELECT id FROM {table}"))
            while info.state is not State.RUNNING:
                info = await service.get(session, info.id, wait_s=5)
            infos.append(info)
            [relation] = spark.queries[-1].relations
            first = relation.fragments[0].fragment_id
            spark.fragments[spark.queries[-1].id] = [RunningFragment(first, "host/1", 1, 5, 3, 40)]
        # Bob sees all of the table, and of his statement alone. Ann's fragments count rows that she does not.
        assert list_tasks(service, ann) == []
        assert sorted(list_tasks(service, bob)) == [
            (infos[1].id, "0-0", "host/1", 1, "RUNNING", 5, 3, 40),
            (infos[1].id, "0-1", None, None, "QUEUED", None, None, None),
        ]
        spark.held.set()
        for session, info in zip((ann, bob), infos, strict=True):
            await finish(service, session, info)
        await asyncio.sleep(0)
        assert {each[4] for each in list_tasks(service, bob)} == {"FINISHED"}
        assert list_tasks(service, ann) == []


def test_nobody_sees_at_workers_what_others_scan():
    idle = WorkerInfo("host/1", is_healthy=True, cores=2)
    busy = WorkerInfo("host/1", is_healthy=True, cores=2, active_fragments=3)
    assert workers_table([busy]) == workers_table([idle])
