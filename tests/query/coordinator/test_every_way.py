"""Whatever way a restricted table is named, its rows are those that are left, locally run (I101, I103)."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from cynosure.common.clock import SystemClock
from cynosure.query.coordinator.service import StatementService
from cynosure.query.local.engine import LocalEngine
from cynosure.query.settings import QuerySettings
from tests.query.coordinator.asking import ask, open_service
from tests.query.governed_world import World, orders

pytestmark = pytest.mark.anyio


class Scene(NamedTuple):
    world: World
    service: StatementService
    names: dict[str, str]


@pytest.fixture(scope="module")
async def scene(world: World, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """A table with rows that ann may not see, snapshots from before the policy, and views over it."""
    table = await world.make_table()
    first = (await world.append(table, orders(0, 2, "EU"))).snapshot_id
    second = (await world.append(table, orders(2, 2, "US", owner="hidden-one"))).snapshot_id
    await world.send(
        "POST",
        f"namespaces/shop/tables/{table}",
        {
            "requirements": [],
            "updates": [
                {"action": "set-snapshot-ref", "ref-name": "old", "type": "tag", "snapshot-id": second},
                {"action": "set-snapshot-ref", "ref-name": "dev", "type": "branch", "snapshot-id": second},
            ],
        },
    )
    await world.append(table, orders(4, 2, "US", owner="hidden-two"))
    view = await world.make_view(
        world.fresh("v"), f"SELECT * FROM {table}", ["id", "region", "owner", "amount", "day"]
    )
    outer = await world.make_view(
        world.fresh("v"), f"WITH x AS (SELECT * FROM {view}) SELECT id, region FROM x", ["id", "region"]
    )
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path_factory.mktemp("spill"), clock=SystemClock())
    names = {"t": table, "v": view, "o": outer, "first": str(first), "second": str(second)}
    async with open_service(local, file_roots=(world.server.warehouse.as_uri(),)) as service:
        yield Scene(world, service, names)
    await local.close()


WAYS = [
    ("SELECT id FROM {t}", 6),
    ("SELECT id FROM shop.{t}", 6),
    ("SELECT id FROM lake.shop.{t} AS x", 6),
    ("SELECT x.id FROM `lake`.`shop`.`{t}` x", 6),
    ("SELECT id FROM {t} VERSION AS OF {second}", 4),
    ("SELECT id FROM {t} VERSION AS OF 'old'", 4),
    ("SELECT id FROM {t} VERSION AS OF 'dev'", 4),
    ("SELECT id FROM {t}.branch_dev", 4),
    ("SELECT id FROM {t}.tag_old", 4),
    ("SELECT id FROM {t}.snapshot_id_{second}", 4),
    ("SELECT id FROM {v}", 6),
    ("SELECT id FROM {o}", 6),
    ("SELECT id FROM (SELECT * FROM {o}) z", 6),
    ("WITH {t} AS (SELECT * FROM {t}) SELECT id FROM {t}", 6),
    ("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id", 6),
    ("SELECT id FROM {t} UNION SELECT id FROM {v}", 6),
    ("SELECT a.id FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id)", 6),
    ("SELECT id FROM {t} /* region = 'US' */ -- OR TRUE", 6),
    ("SELECT id FROM {t} WHERE region = 'US' OR region = 'EU'", 6),
]


@pytest.mark.parametrize(("sql", "everything"), WAYS)
async def test_only_rows_that_are_left(scene: Scene, sql: str, everything: int):
    text = sql.format(**scene.names)
    for user, wanted in (("ann", {0, 1}), ("bob", set(range(everything)))):
        info, rows = await ask(scene.service, await scene.world.open(user), text)
        # Without the policy the same statement shows more: the control.
        assert {each["id"] for each in rows} == wanted, user
        assert bool(info.policies) == (user == "ann")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS x FROM {t} WHERE region = 'US'",
        "SELECT max(owner) AS x FROM {t} WHERE id > 1",
        "SELECT (SELECT max(id) FROM {t} VERSION AS OF {second}) AS x",
        "SELECT sum(amount) AS x FROM {v} WHERE owner LIKE 'hidden%'",
    ],
)
async def test_nothing_of_hidden_rows_is_counted(scene: Scene, sql: str):
    text = sql.format(**scene.names)
    found = {}
    for user in ("ann", "bob"):
        _, [row] = await ask(scene.service, await scene.world.open(user), text)
        found[user] = row["x"]
    assert found["bob"] not in (None, 0, 1)
    assert found["ann"] in (None, 0, 1)
