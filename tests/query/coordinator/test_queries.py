"""Queries from their text to what an engine is asked, over a real catalog (I103, I110)."""

import msgspec
import pytest

from cynosure.common.errors import Conflict, CynosureError
from cynosure.query.catalog_access.http import HttpCatalogSession
from cynosure.query.engine import WorkerInfo
from cynosure.query.errors import NoSuchRelation, NotAllowed, PolicyHides, SqlError
from cynosure.query.scan_task import InlineTask, ScanTask
from cynosure.query.settings import QuerySettings
from cynosure.testing.small_engine import SmallEngine
from tests.query.coordinator.asking import ask, ask_small, nothing, open_service
from tests.query.governed_world import World, orders

pytestmark = pytest.mark.anyio


async def test_a_query_becomes_one_governed_relation_per_mention(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.append(table, orders(3, 3, "US"))
    policy = await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    sql = f"SELECT a.id, b.amount FROM {table} a JOIN lake.shop.{table} b ON a.id = b.id WHERE a.id > 1"
    info, query = await ask_small(world, "ann", sql)
    assert query is not None
    assert (info.state, info.engine, info.reason) == ("FINISHED", "local", "no cluster")
    assert info.tables == (f"lake.shop.{table}",)
    assert info.policies == (f"shop.{policy}",)
    assert [each.view for each in query.relations] == ["cyn_0", "cyn_1"]
    first, second = query.relations
    assert {each.name for each in first.columns} == {"id"}
    assert {each.name for each in second.columns} == {"id", "amount"}
    for relation in query.relations:
        # The file of the other region is not even planned.
        assert sum(len(task.files) for task in relation.fragments) == 1
        for task in relation.fragments:
            assert isinstance(task, ScanTask)
            assert b'"EU"' in task.row_filter
            assert table in task.places[0]
    assert b'"gt"' in first.fragments[0].predicates
    text = query.tree.sql(dialect="spark")
    assert table not in text
    assert "cyn_0" in text


async def test_unrestricted_users_have_no_filter(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.restrict(table, filter="region = 'US'", except_roles=["bob_role"])
    _, query = await ask_small(world, "bob", f"SELECT count(*) FROM {table}")
    assert query is not None
    [relation] = query.relations
    assert relation.columns == ()
    assert relation.fragments[0].row_filter == b"true"
    _, query = await ask_small(world, "ann", f"SELECT count(*) FROM {table}")
    assert query is not None
    assert query.relations[0].fragments == ()


async def test_a_change_of_policy_counts_with_the_next_statement(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    seen = []
    for _ in range(2):
        _, query = await ask_small(world, "ann", f"SELECT id FROM {table}")
        assert query is not None
        seen.append(query.relations[0].fragments[0].row_filter)
        policy = await world.restrict(table, filter="region = 'EU'")
    assert seen[0] == b"true"
    assert seen[1] != b"true"
    await world.lift(table, policy)


async def test_predicates_on_masked_columns_are_not_pushed(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.restrict(table, columns={"region": "mask-alphanum"})
    _, query = await ask_small(world, "ann", f"SELECT id FROM {table} WHERE region = 'XX' AND id = 1")
    assert query is not None
    [task] = query.relations[0].fragments
    assert isinstance(task, ScanTask)
    assert b"XX" not in task.predicates
    assert b'"id":1' in task.predicates
    assert task.masks[0].field_id == 2


async def test_with_skipping_off_conditions_decide_nothing_about_what_is_read_under_a_filter(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.append(table, orders(3, 3, "EU"))
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    sql, off = f"SELECT id FROM {table} WHERE id > 3", QuerySettings(skip_below_filters=False)
    for user, settings, files in (("ann", off, 2), ("bob", off, 1), ("ann", QuerySettings(), 1)):
        engine = SmallEngine(nothing)
        async with open_service(engine, settings=settings) as service:
            await ask(service, await world.open(user), sql)
        tasks = engine.queries[-1].relations[0].fragments
        assert sum(len(each.files) for each in tasks) == files
        assert all((each.predicates == b"true") == (files == 2) for each in tasks)


async def test_a_row_filter_on_a_masked_column_still_holds(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.append(table, orders(0, 3, "US"))
    await world.restrict(table, columns={"region": "mask-alphanum"})
    await world.restrict(table, filter="region = 'EU'")
    _, query = await ask_small(world, "ann", f"SELECT id FROM {table}")
    assert query is not None
    # The catalog chooses no files by a masked column, so both are read, and the filter decides.
    assert sum(len(each.files) for each in query.relations[0].fragments) == 2
    assert all(b'"EU"' in each.row_filter for each in query.relations[0].fragments)


async def test_two_mentions_of_a_table_are_of_one_snapshot_and_time_travel_is_of_its_own(world: World):
    table = await world.make_table()
    first = (await world.append(table, orders(0, 3, "EU"))).snapshot_id
    second = (await world.append(table, orders(0, 3, "EU"))).snapshot_id
    sql = (
        f"SELECT 1 FROM {table} a, {table} b, {table} VERSION AS OF {first} c, "
        f"{table}.snapshot_id_{first} d, {table}.branch_main e"
    )
    _, query = await ask_small(world, "ann", sql)
    assert query is not None
    assert [each.table.snapshot_id for each in query.relations if each.table] == [
        second,
        second,
        first,
        first,
        second,
    ]


async def test_a_moment_is_worked_out_at_the_statements_time_in_views_too(world: World):
    table = await world.make_table()
    first = await world.append(table, orders(0, 1, "EU"))
    view = await world.make_view(world.fresh("v"), f"SELECT id FROM {table} TIMESTAMP AS OF now()", ["id"])
    _, query = await ask_small(
        world,
        "ann",
        f"SELECT a.id FROM {table} TIMESTAMP AS OF current_timestamp() a, {view}, "
        f"{table} FOR SYSTEM_TIME AS OF now() + INTERVAL 1 DAY b",
    )
    assert query is not None
    read = [each.table for each in query.relations]
    assert {each.snapshot_id for each in read if each is not None} == {first.snapshot_id}
    with pytest.raises(SqlError, match="no snapshot as old as that"):
        await ask_small(world, "ann", f"SELECT id FROM {table} TIMESTAMP AS OF now() - INTERVAL 1 DAY")


async def test_an_old_schema_without_the_filters_column_hides_the_table(world: World):
    table = await world.make_table()
    first = (await world.append(table, orders(0, 3, "EU"))).snapshot_id
    await world.send(
        "POST",
        f"namespaces/shop/tables/{table}",
        {
            "requirements": [],
            "updates": [
                {
                    "action": "add-schema",
                    "schema": {
                        "type": "struct",
                        "fields": [
                            {"id": 1, "name": "id", "type": "long", "required": True},
                            {"id": 6, "name": "tenant", "type": "string", "required": False},
                        ],
                    },
                    "last-column-id": 6,
                },
                {"action": "set-current-schema", "schema-id": -1},
            ],
        },
    )
    policy = await world.restrict(table, filter="tenant = 'secret-tenant'")
    _, query = await ask_small(world, "ann", f"SELECT id FROM {table}")
    assert query is not None
    with pytest.raises(PolicyHides) as raised:
        await ask_small(world, "ann", f"SELECT id FROM {table} VERSION AS OF {first}")
    assert policy in str(raised.value)
    assert "secret" not in str(raised.value)


async def test_views_have_the_rights_of_who_asks(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    inner = await world.make_view(world.fresh("v"), f"SELECT region, id FROM {table}", ["region", "id"])
    outer = await world.make_view(world.fresh("v"), f"SELECT region FROM {inner} WHERE id > 0", ["region"])
    await world.restrict(table, filter="region = 'EU'")
    info, query = await ask_small(world, "ann", f"SELECT * FROM {outer} x, {table} y")
    assert query is not None
    assert set(info.tables) == {f"lake.shop.{each}" for each in (table, inner, outer)}
    assert len(query.relations) == 2
    assert all(b'"EU"' in task.row_filter for each in query.relations for task in each.fragments)
    loop = world.fresh("v")
    await world.make_view(loop, f"SELECT region FROM {loop}", ["region"])
    with pytest.raises(SqlError, match="contains itself"):
        await ask_small(world, "ann", f"SELECT * FROM {loop}")
    bad = await world.make_view(world.fresh("v"), "SELECT reflect('java.lang.System', 'exit')", ["x"])
    with pytest.raises(NotAllowed, match="query of a view"):
        await ask_small(world, "ann", f"SELECT * FROM {bad}")


async def test_tables_of_others_and_missing_ones_are_one_answer(world: World):
    table = await world.make_table()
    texts = []
    for name in (table, "nothing"):
        with pytest.raises(NoSuchRelation) as raised:
            await ask_small(world, "eve", f"SELECT * FROM {name}")
        texts.append(str(raised.value).replace(name, "X"))
    assert texts[0] == texts[1]


async def test_a_policy_that_does_not_fit_is_named(world: World):
    table = await world.make_table()
    policy = world.fresh("policy")
    base = f"{world.lake.root}/polaris/v1/lake"
    content = msgspec.json.encode({"enable": True, "filter": "nowhere = 'secret'"}).decode()
    body = {"name": policy, "type": "cynosure.row-filter", "content": content}
    await world.send("POST", "namespaces/shop/policies", body, base=base)
    mapping = f"namespaces/shop/policies/{policy}/mappings"
    target = {"target": {"type": "namespace", "path": ["shop"]}}
    await world.send("PUT", mapping, target, base=base)
    try:
        with pytest.raises(PolicyHides) as raised:
            await ask_small(world, "ann", f"SELECT * FROM {table}")
    finally:
        await world.send("POST", mapping, target, base=base)
    assert policy in str(raised.value)
    assert "secret" not in str(raised.value)


async def test_metadata_tables_are_for_those_whom_no_policy_restricts(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    _, query = await ask_small(world, "ann", f"SELECT snapshot_id, operation FROM {table}.snapshots")
    assert query is not None
    [task] = query.relations[0].fragments
    assert isinstance(task, InlineTask)
    with pytest.raises(NotAllowed, match="not offered"):
        await ask_small(world, "ann", f"SELECT * FROM {table}.all_files")
    await world.restrict(table, columns={"region": "mask-alphanum"}, except_roles=["bob_role"])
    for name in ("snapshots", "history", "refs", "files"):
        with pytest.raises(NotAllowed, match="Policies of this table"):
            await ask_small(world, "ann", f"SELECT * FROM {table}.{name}")
    await ask_small(world, "bob", f"SELECT * FROM {table}.refs")


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELEC 1", SqlError),
        ("DROP TABLE t", NotAllowed),
        ("SET spark.sql.ansi.enabled=false", NotAllowed),
        ("SELECT java_method('a', 'b')", NotAllowed),
        ("SELECT * FROM parquet.`/etc/passwd`", SqlError),
        ("SELECT * FROM system.runtime.secrets", NoSuchRelation),
    ],
)
async def test_what_is_not_allowed_is_refused(world: World, sql: str, error: type[CynosureError]):
    with pytest.raises(error):
        await ask_small(world, "ann", sql)


async def test_policies_that_change_while_a_statement_is_planned_are_bound_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    original, changed = HttpCatalogSession.plan, []

    async def plan(session, opened, columns, wanted):
        if not changed:
            changed.append(await world.restrict(table, filter="region = 'US'"))
        return await original(session, opened, columns, wanted)

    monkeypatch.setattr(HttpCatalogSession, "plan", plan)
    info, query = await ask_small(world, "ann", f"SELECT id FROM {table}")
    assert query is not None
    assert info.policies == (f"shop.{changed[0]}",)
    assert query.relations[0].fragments == ()

    async def never(session, opened, columns, wanted):
        raise Conflict("The table or its policies changed while the statement was planned")

    monkeypatch.setattr(HttpCatalogSession, "plan", never)
    with pytest.raises(Conflict):
        await ask_small(world, "ann", f"SELECT id FROM {table}")


async def test_the_audit_of_the_realm_has_one_event_per_statement(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    policy = await world.restrict(table, filter="region = 'EU'")
    info, _ = await ask_small(world, "ann", f"SELECT id FROM {table} WHERE owner = 'hidden'")
    own, cursor = [], None
    async with world.server.client() as http:
        while True:
            query = {"limit": 1000, "principal": "ann", **({"cursor": cursor} if cursor else {})}
            page = (await http.get("/api/management/v1/cynosure/events", params=query)).json()
            own += [each for each in page["events"] if info.id in str(each)]
            cursor = page["cursor"]
            if not page["hasMore"]:
                break
    [event] = own
    assert policy in str(event)
    assert "hidden" not in str(event)


async def test_what_should_be_distributed_is(world: World):
    table = await world.make_table()
    for start in range(0, 9, 3):
        await world.append(table, orders(start, 3, "EU"))
    workers = [WorkerInfo(f"host/{at}", is_healthy=True) for at in range(3)]
    settings = QuerySettings(distribute_above=1)
    for count in (2, 3):
        local, spark = (
            SmallEngine(nothing),
            SmallEngine(nothing, name="spark-isolated", workers=workers[:count]),
        )
        async with open_service(local, settings=settings, spark=spark, cluster=spark) as service:
            info, _ = await ask(service, await world.open("ann"), f"SELECT id FROM {table}")
            assert (info.engine, info.reason) == ("spark-isolated", "large enough to distribute")
            [relation] = spark.queries[0].relations
            # A fragment for each core, and every file in one of them.
            assert len(relation.fragments) == count
            assert sum(len(each.files) for each in relation.fragments) == 3
            spark.known_workers.append(WorkerInfo("host/9", is_healthy=True, cores=8))
            spark.known_workers += [WorkerInfo(f"host/1{at}", is_healthy=True) for at in range(3)]
            info, _ = await ask(service, await world.open("ann"), f"SELECT id FROM {table}")
            assert (info.engine, info.reason) == ("local", "fewer files than workers")
            info, _ = await ask(service, await world.open("ann"), "SELECT 1 AS x")
            assert (info.engine, info.reason) == ("local", "no scan")


async def test_a_count_from_metadata_is_not_distributed_and_one_that_reads_files_is(world: World):
    table = await world.make_table()
    for start in range(0, 9, 3):
        await world.append(table, orders(start, 3, "EU"))
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    spark = SmallEngine(
        nothing, name="spark-isolated", workers=[WorkerInfo(f"host/{at}", is_healthy=True) for at in range(2)]
    )
    local, settings = SmallEngine(nothing), QuerySettings(distribute_above=1)
    async with open_service(local, settings=settings, spark=spark, cluster=spark) as service:
        info, _ = await ask(service, await world.open("bob"), f"SELECT count(*) FROM {table}")
        assert (info.engine, info.reason) == ("local", "fewer files than workers")
        [relation] = local.queries[0].relations
        assert relation.total_bytes == 0
        # They are all there to be counted all the same.
        assert sum(len(each.files) for each in relation.fragments) == 3
        for user, sql in [
            # Rows that the filter leaves are in files; and so are those of a condition.
            ("ann", f"SELECT count(*) FROM {table}"),
            ("bob", f"SELECT count(*) FROM {table} WHERE id > 0"),
            ("bob", f"SELECT count(*) FROM {table} a, (SELECT id FROM {table}) b"),
        ]:
            info, _ = await ask(service, await world.open(user), sql)
            assert (info.engine, info.reason) == ("spark-isolated", "large enough to distribute")
