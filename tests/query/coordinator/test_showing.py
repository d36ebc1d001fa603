"""EXPLAIN, SHOW, DESCRIBE and the tables of the gateway itself, over a real catalog (I101)."""

import pytest

from cynosure.common.clock import SystemClock
from cynosure.query.coordinator.showing import filter_names
from cynosure.query.engine import WorkerInfo
from cynosure.query.errors import NoSuchRelation, NotAllowed
from cynosure.query.local.engine import LocalEngine
from cynosure.query.settings import QuerySettings
from cynosure.testing.small_engine import SmallEngine
from tests.query.coordinator.asking import ask, nothing, open_service
from tests.query.governed_world import World, orders

pytestmark = pytest.mark.anyio


async def explain(world: World, user: str, sql: str) -> str:
    async with open_service(SmallEngine(nothing)) as service:
        _, rows = await ask(service, await world.open(user), sql)
    return "\n".join(each["plan"] for each in rows)


async def show(world: World, user: str, sql: str, **more) -> list[dict]:
    async with open_service(None) as service:
        info, rows = await ask(service, await world.open(user), sql, **more)
    assert (info.engine, info.reason) == ("none", "answered by the coordinator")
    return rows


async def test_explain_names_policies_and_the_reason_and_no_constant_of_a_policy(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    row = await world.restrict(table, filter="owner = 'hidden-owner'", except_roles=["bob_role"])
    mask = await world.restrict(table, columns={"region": "mask-alphanum"}, except_roles=["bob_role"])
    text = await explain(world, "ann", f"EXPLAIN SELECT region FROM {table} WHERE id > 7")
    assert "engine: local (no cluster)" in text
    assert f"shop.{row}" in text
    assert f"shop.{mask}" in text
    assert "owner = (string)" in text
    assert "region mask-alphanum" in text
    assert "pushed: id > 7" in text
    assert "hidden-owner" not in text
    assert "files" not in text
    assert "file:" not in text
    text = await explain(world, "bob", f"EXPLAIN EXTENDED SELECT region FROM {table} WHERE id < 7")
    assert "files: 1" in text
    assert "bound:" in text
    assert "cyn_0" in text
    assert "file:" not in text


async def test_explain_says_which_time_a_table_is_read_at(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    text = await explain(
        world, "ann", f"EXPLAIN SELECT id FROM {table} TIMESTAMP AS OF '2999-01-01' + INTERVAL 2 DAYS"
    )
    assert " of 2999-01-03 00:00:00Z, schema: of the snapshot" in text


async def test_explain_shows_conditions_with_the_parentheses_that_they_need(world: World):
    table = await world.make_table()
    where = "id > 1 AND id < 9 AND (region = 'EU' OR region = 'US') AND owner IS NOT NULL"
    text = await explain(world, "ann", f"EXPLAIN SELECT id FROM {table} WHERE {where}")
    assert (
        "pushed: id > 1 and id < 9 and (region = 'EU' or region = 'US') and owner not-null\n" in f"{text}\n"
    )


async def test_explain_says_pushed_only_of_what_is(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    sql, off = f"EXPLAIN SELECT id FROM {table} WHERE id > 7", QuerySettings(skip_below_filters=False)
    for user, settings, is_pushed in (
        ("ann", off, False),
        ("bob", off, True),
        ("ann", QuerySettings(), True),
    ):
        async with open_service(SmallEngine(nothing), settings=settings) as service:
            _, rows = await ask(service, await world.open(user), sql)
        assert any("pushed: id > 7" in each["plan"] for each in rows) == is_pushed, user


async def test_progress_tells_nothing_about_restricted_tables(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    for user, fragments in (("bob", 1), ("ann", 0)):
        async with open_service(SmallEngine(nothing)) as service:
            info, _ = await ask(service, await world.open(user), f"SELECT id FROM {table}")
        assert info.progress.fragments == fragments
        assert bool(info.progress.bytes_total) == bool(fragments)


async def test_show_and_describe_have_sparks_headings(world: World):
    table = await world.make_table()
    view = await world.make_view(world.fresh("v"), "SELECT 1 AS x", ["x"])
    assert {"namespace": "shop", "tableName": table, "isTemporary": False} in await show(
        world, "ann", "SHOW TABLES"
    )
    assert await show(world, "ann", f"SHOW TABLES IN lake.shop LIKE '{table.upper()}|nothing*'") == [
        {"namespace": "shop", "tableName": table, "isTemporary": False}
    ]
    assert {"namespace": "shop"} in await show(world, "ann", "SHOW NAMESPACES IN lake")
    assert view in [each["viewName"] for each in await show(world, "ann", "SHOW VIEWS IN shop")]
    assert await show(world, "ann", f"SHOW COLUMNS IN {table}") == [
        {"col_name": each} for each in ("id", "region", "owner", "amount", "day")
    ]
    assert {"function": "upper"} in await show(world, "ann", "SHOW FUNCTIONS LIKE 'up*'")
    assert (await show(world, "ann", f"DESCRIBE {table}"))[:2] == [
        {"col_name": "id", "data_type": "bigint", "comment": None},
        {"col_name": "region", "data_type": "string", "comment": None},
    ]
    policy = await world.restrict(table, filter="region = 'EU'")
    extended = {
        each["col_name"]: each["data_type"] for each in await show(world, "ann", f"DESCRIBE EXTENDED {table}")
    }
    assert extended["Policies"] == f"shop.{policy}"
    [created] = await show(world, "ann", f"SHOW CREATE TABLE {table}")
    assert created["createtab_stmt"].startswith(f"CREATE TABLE lake.shop.{table} (\n  id BIGINT NOT NULL")
    info = {
        each["info_name"]: each["info_value"] for each in await show(world, "ann", "DESCRIBE NAMESPACE shop")
    }
    assert info["Namespace Name"] == "shop"


async def test_metadata_tables_and_the_gateways_own_are_described_as_they_are_selected(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    policy = await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    assert {"col_name": "committed_at", "data_type": "timestamp", "comment": None} in await show(
        world, "bob", f"DESCRIBE {table}.snapshots"
    )
    assert {"col_name": "summary", "data_type": "map<string,string>", "comment": None} in await show(
        world, "bob", f"DESCRIBE TABLE EXTENDED lake.shop.{table}.snapshots"
    )
    assert {"col_name": "file_path"} in await show(world, "bob", f"SHOW COLUMNS IN {table}.files")
    for sql in (f"DESCRIBE {table}.snapshots", f"SHOW COLUMNS IN {table}.partitions"):
        with pytest.raises(NotAllowed) as caught:
            await show(world, "ann", sql)
        assert caught.value.details["policies"] == f"shop.{policy}"
    assert (await show(world, "ann", f"DESCRIBE {table}.branch_main"))[0]["col_name"] == "id"
    assert (await show(world, "ann", "DESCRIBE system.runtime.queries"))[0] == {
        "col_name": "query_id",
        "data_type": "string",
        "comment": None,
    }
    assert await show(world, "ann", "SHOW TABLES IN system.runtime LIKE '*s'") == [
        {"namespace": "system.runtime", "tableName": each, "isTemporary": False}
        for each in ("queries", "tasks", "workers")
    ]
    for sql in ("DESCRIBE system.runtime.nothing", f"DESCRIBE {table}.nothing", "DESCRIBE nothing.snapshots"):
        with pytest.raises(NoSuchRelation):
            await show(world, "ann", sql)
    for sql in (f"SHOW CREATE TABLE {table}.snapshots", "SHOW TBLPROPERTIES system.runtime.queries"):
        with pytest.raises(NotAllowed):
            await show(world, "bob", sql)


SPEC = {
    "spec-id": 0,
    "fields": [
        {"name": "region", "transform": "identity", "source-id": 2},
        {"name": "day_month", "transform": "month", "source-id": 5},
        {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1},
        {"name": "owner_trunc", "transform": "truncate[4]", "source-id": 3},
    ],
}
PROPERTIES = {
    "comment": "It's \\ all",
    "write.format.default": "parquet",
    "numRows": "12345",
    "s3.secret-access-key": "hunter2",
}


async def test_a_tables_layout_is_shown_to_all_and_its_properties_to_whom_nothing_is_hidden_from(
    world: World,
):
    table = await world.make_table(spec=SPEC, properties=PROPERTIES)
    policy = await world.restrict(table, filter="region = 'hidden-region'", except_roles=["bob_role"])
    parts = ["region", "months(day)", "bucket(16, id)", "truncate(4, owner)"]
    for user in ("ann", "bob"):
        plain = await show(world, user, f"DESCRIBE {table}")
        assert [each["data_type"] for each in plain if each["col_name"].startswith("Part ")] == parts
    extended = {
        user: {
            each["col_name"]: each["data_type"]
            for each in await show(world, user, f"DESCRIBE EXTENDED {table}")
        }
        for user in ("ann", "bob")
    }
    assert extended["bob"]["Comment"] == extended["ann"]["Comment"] == PROPERTIES["comment"]
    assert "numRows=12345" in extended["bob"]["Table Properties"]
    assert "s3.secret-access-key=*********(redacted)" in extended["bob"]["Table Properties"]
    assert extended["bob"]["Location"]
    assert extended["ann"].keys() & {"Table Properties", "Location"} == set()
    assert extended["ann"]["Policies"] == f"shop.{policy}"

    assert {"key": "numRows", "value": "12345"} in await show(world, "bob", f"SHOW TBLPROPERTIES {table}")
    assert await show(world, "bob", f"SHOW TBLPROPERTIES {table} ('s3.secret-access-key')") == [
        {"key": "s3.secret-access-key", "value": "*********(redacted)"}
    ]
    [missing] = await show(world, "bob", f"SHOW TBLPROPERTIES {table} (nothing)")
    assert missing["value"].endswith("does not have property: nothing")
    with pytest.raises(NotAllowed, match="do not allow its properties"):
        await show(world, "ann", f"SHOW TBLPROPERTIES {table}")

    [for_ann] = await show(world, "ann", f"SHOW CREATE TABLE {table}")
    [for_bob] = await show(world, "bob", f"SHOW CREATE TABLE {table}")
    assert f"PARTITIONED BY ({', '.join(parts)})\nCOMMENT 'It\\'s \\\\ all'\n" in for_ann["createtab_stmt"]
    assert "numRows" not in for_ann["createtab_stmt"]
    assert "'numRows' = '12345'" in for_bob["createtab_stmt"]
    assert "hunter2" not in str((for_bob, extended))


async def test_partitions_that_are_columns_are_listed_as_columns(world: World):
    spec = {"spec-id": 0, "fields": [{"name": "region", "transform": "identity", "source-id": 2}]}
    table = await world.make_table(spec=spec)
    rows = await show(world, "ann", f"DESCRIBE {table}")
    assert [tuple(each.values()) for each in rows[5:]] == [
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        ("region", "string", None),
    ]


async def test_who_may_not_list_and_what_is_not_there_are_refused_alike(world: World):
    for user, sql in (
        ("eve", "SHOW TABLES"),
        ("eve", "DESCRIBE NAMESPACE shop"),
        ("ann", "SHOW TABLES IN lake.nothing"),
        ("ann", "DESCRIBE nothing"),
    ):
        with pytest.raises(NoSuchRelation):
            await show(world, user, sql)


async def test_views_are_described_by_their_query(world: World, tmp_path):
    table = await world.make_table()
    view = await world.make_view(
        world.fresh("v"), f"SELECT id, count(*) FROM {table} GROUP BY id", ["a", "n"]
    )
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path, clock=SystemClock())
    async with open_service(local) as service:
        _, described = await ask(service, await world.open("ann"), f"DESCRIBE {view}")
        _, unnamed = await ask(service, await world.open("ann"), "DESCRIBE QUERY SELECT 1 + 1, 2 AS b")
    assert [(each["col_name"], each["data_type"]) for each in described] == [("a", "bigint"), ("n", "bigint")]
    assert [each["col_name"] for each in unnamed] == ["(1 + 1)", "b"]
    assert await show(world, "ann", f"SHOW COLUMNS IN {view}") == [{"col_name": "a"}, {"col_name": "n"}]
    with pytest.raises(NotAllowed, match="view"):
        await show(world, "ann", f"SHOW CREATE TABLE {view}")
    assert await show(world, "ann", "SHOW CURRENT NAMESPACE") == [{"catalog": "lake", "namespace": "shop"}]


async def test_the_gateways_own_tables_show_ones_own_statements(world: World, tmp_path):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path, clock=SystemClock())
    cluster = SmallEngine(nothing, workers=[WorkerInfo("host/1", is_healthy=False, cores=4)])
    ann, bob = await world.open("ann"), await world.open("bob")
    async with open_service(
        local, spark=cluster, cluster=cluster, file_roots=(world.server.warehouse.as_uri(),)
    ) as service:
        first, _ = await ask(service, ann, f"SELECT region FROM {table} WHERE owner <> 'secret'")
        _, rows = await ask(service, ann, "SELECT query_id, state, user, query FROM system.runtime.queries")
        assert {"query_id": first.id, "state": "FINISHED", "user": "ann"}.items() <= rows[-1].items()
        assert "secret" not in rows[-1]["query"]
        _, rows = await ask(service, ann, "SELECT query_id, state FROM system.runtime.tasks")
        assert {"query_id": first.id, "state": "FINISHED"} in rows
        _, rows = await ask(service, bob, "SELECT query_id FROM system.runtime.queries")
        assert first.id not in [each["query_id"] for each in rows]
        _, rows = await ask(service, bob, "SELECT worker, state, cores FROM system.runtime.workers")
        assert rows == [{"worker": "host/1", "state": "UNHEALTHY", "cores": 4}]
        _, rows = await ask(service, ann, f"SELECT operation FROM {table}.snapshots")
        assert rows == [{"operation": "append"}]
        _, rows = await ask(service, ann, f"DESCRIBE QUERY SELECT id, upper(region) AS r FROM {table}")
        assert rows == [
            {"col_name": "id", "data_type": "bigint", "comment": None},
            {"col_name": "r", "data_type": "string", "comment": None},
        ]
    await local.close()


async def test_rows_through_the_local_engine_are_governed(world: World, tmp_path):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    await world.append(table, orders(3, 3, "US", owner="bob"))
    await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    await world.restrict(table, columns={"owner": "replace-with-null"}, except_roles=["bob_role"])
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path, clock=SystemClock())
    async with open_service(local, file_roots=(world.server.warehouse.as_uri(),)) as service:
        for user, wanted in (
            ("ann", [{"id": each, "owner": None} for each in range(3)]),
            ("bob", [{"id": each, "owner": "ann" if each < 3 else "bob"} for each in range(6)]),
        ):
            _, rows = await ask(service, await world.open(user), f"SELECT id, owner FROM {table} ORDER BY id")
            assert rows == wanted
            _, rows = await ask(service, await world.open(user), f"SELECT count(*) AS n FROM {table}")
            assert rows == [{"n": len(wanted)}]
    await local.close()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", "orders Order_Items items a.b"),
        ("", ""),
        ("**", "orders Order_Items items a.b"),
        ("ORDER*", "orders Order_Items"),
        ("*items", "Order_Items items"),
        ("o*r*s", "orders Order_Items"),
        ("*e*e*", "Order_Items"),
        ("i*items", ""),
        ("items*items", ""),
        ("items|a.b", "items a.b"),
        (" items | a?b |x", "items"),
        ("o*d*d*", ""),
        ("*r*_*m*", "Order_Items"),
    ],
)
def test_stars_stand_for_anything_and_nothing_else_does(pattern: str, expected: str) -> None:
    assert filter_names(["orders", "Order_Items", "items", "a.b"], pattern) == expected.split()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("pattern", ["*" * 900 + "!", "*a" * 450 + "*b", "|".join(["*a*!"] * 200)])
def test_no_pattern_is_tried_in_many_ways(pattern: str) -> None:
    assert filter_names(["a" * 1_000] * 100, pattern) == []
