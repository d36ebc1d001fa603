"""The catalog as one user sees it, asked of a real one (I110)."""

import pytest

from cynosure.common.errors import Conflict, Forbidden, NotAuthenticated, Unavailable
from cynosure.iceberg.expressions import parse_expression
from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.query.catalog_access.port import OpenedTable, OpenedView, TableName
from cynosure.query.errors import NoSuchRelation, NotAllowed, PolicyHides, SqlError
from cynosure.query.sql.bound import TimeTravel
from cynosure.testing.admin import Grant
from tests.query.governed_world import NS, World, orders

pytestmark = pytest.mark.anyio


def name_of(table: str) -> TableName:
    return TableName("lake", NS, table)


async def open_table(world: World, user: str, table: str, travel: TimeTravel | None = None) -> OpenedTable:
    opened = await (await world.open(user)).open_name(name_of(table), travel)
    assert isinstance(opened, OpenedTable)
    return opened


async def test_a_session_is_of_the_user_and_a_bad_token_of_nobody(world: World):
    session = await world.open("ann")
    assert session.user == "ann"
    assert session.owner.startswith("default/")
    assert session.owner != (await world.open("bob")).owner
    with pytest.raises(NotAuthenticated):
        await world.make_sessions().open(None, "eyJ.not.a-token")


async def test_a_gateway_that_is_not_trusted_says_what_to_do(world: World):
    sessions = world.make_sessions()
    sessions._exchange._credentials = type(sessions._exchange._credentials)(
        world.credentials["bob"].client_id,
        type(sessions._exchange._credentials.client_secret)(world.credentials["bob"].secret),
    )
    with pytest.raises(Unavailable, match="may not act for users"):
        await sessions.open(None, world.token_of("ann"))


async def test_hidden_and_missing_are_one_answer(world: World):
    table = await world.make_table()
    eve = await world.open("eve")
    errors = []
    for name in (table, "nothing"):
        with pytest.raises(NoSuchRelation) as raised:
            await eve.open_name(name_of(name), None)
        errors.append(str(raised.value).replace(name, "X"))
    assert errors[0] == errors[1]


async def test_rows_need_the_right_to_read_them(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 3, "EU"))
    user = await world.add_user(world.fresh("looker"), Grant("TABLE_READ_PROPERTIES"))
    session = await world.open(user)
    opened = await session.open_name(name_of(table), None)
    with pytest.raises(Forbidden, match="may not read the rows"):
        await session.plan(opened, (1,), TRUE)


async def test_a_plan_has_the_files_and_a_filter_leaves_some_out(world: World):
    table = await world.make_table()
    for region in ("EU", "US"):
        await world.append(table, orders(0, 3, region))
    session = await world.open("ann")
    opened = await open_table(world, "ann", table)
    everything = await session.plan(opened, (1,), TRUE)
    assert len(everything.files) == 2
    assert not everything.deletes
    assert {each.format for each in everything.files} == {"parquet"}
    assert sum(each.record_count for each in everything.files) == 6
    assert len(everything.offsets) == 2
    one = parse_expression(
        {
            "type": "eq",
            "left": {"type": "reference", "id": 2},
            "right": {"type": "literal", "value": "EU", "data-type": "string"},
        }
    )
    some = await session.plan(opened, (1,), one)
    assert len(some.files) == 1
    assert some.renew is None
    assert not some.credentials.properties


async def test_a_plan_of_many_pages_that_takes_its_time_is_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    original, asked = world.http.request, []

    async def request(method, path, **more):
        asked.append((method, path.rpartition(table)[2].rpartition("/")[0 if method == "GET" else 2]))
        return await original(method, path, **more)

    table = await world.make_table()
    for start in range(0, 20, 2):
        await world.append(table, orders(start, 2, "EU"))
    opened = await open_table(world, "ann", table)
    session = await world.open("ann")
    monkeypatch.setattr(world.http, "request", request)
    planned = await session.plan(opened, (1,), TRUE)
    assert ("POST", "tasks") in asked
    assert ("GET", "/plan") in asked
    assert len({each.path for each in planned.files}) == len(planned.files) == len(planned.offsets) == 10
    assert sum(each.record_count for each in planned.files) == 20


async def test_an_empty_table_has_no_snapshot_and_no_files(world: World):
    table = await world.make_table()
    opened = await open_table(world, "ann", table)
    assert opened.snapshot_id == 0
    assert (await (await world.open("ann")).plan(opened, (1,), TRUE)).files == ()


async def test_partition_values_are_constants(world: World):
    spec = {
        "spec-id": 0,
        "fields": [{"name": "region", "transform": "identity", "source-id": 2, "field-id": 1000}],
    }
    table = await world.make_table(spec=spec)
    await world.append(table, orders(0, 2, "EU"))
    opened = await open_table(world, "ann", table)
    planned = await (await world.open("ann")).plan(opened, (1,), TRUE)
    assert [each.constants for each in planned.files] == [{2: "EU"}]


async def test_restrictions_come_with_the_table_and_the_names_of_policies(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 2, "EU"))
    policy = await world.restrict(table, filter="region = 'EU'", except_roles=["bob_role"])
    mask = await world.restrict(table, columns={"owner": "show-last-4"}, except_roles=["bob_role"])
    opened = await open_table(world, "ann", table)
    assert opened.is_restricted
    assert b"EU" in opened.row_filter.expression
    assert [(each.field_id, each.action) for each in opened.masks] == [(3, "show-last-4")]
    assert set(opened.policies) == {f"shop.{policy}", f"shop.{mask}"}
    assert not (await open_table(world, "bob", table)).is_restricted


async def test_a_plan_under_other_policies_than_the_table_was_opened_with_is_a_conflict(world: World):
    table = await world.make_table()
    await world.append(table, orders(0, 2, "EU"))
    session = await world.open("ann")
    before = await open_table(world, "ann", table)
    policy = await world.restrict(table, filter="region = 'EU'")
    with pytest.raises(Conflict):
        await session.plan(before, (1,), TRUE)
    restricted = await open_table(world, "ann", table)
    assert (await session.plan(restricted, (1,), TRUE)).files
    await world.lift(table, policy)
    with pytest.raises(Conflict):
        await session.plan(restricted, (1,), TRUE)


async def test_time_travel_by_snapshot_branch_tag_and_time(world: World):
    table = await world.make_table()
    first = (await world.append(table, orders(0, 2, "EU"))).snapshot_id
    await world.send(
        "POST",
        f"namespaces/shop/tables/{table}",
        {
            "requirements": [],
            "updates": [
                {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": first}
                for name, kind in (("audit", "branch"), ("v1", "tag"))
            ],
        },
    )
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
                            {"id": 6, "name": "extra", "type": "string", "required": False},
                        ],
                    },
                    "last-column-id": 6,
                },
                {"action": "set-current-schema", "schema-id": -1},
            ],
        },
    )
    current = await open_table(world, "ann", table)
    assert b"extra" in current.schema
    assert current.is_current_schema
    moment = current.metadata["snapshot-log"][0]["timestamp-ms"] * 1000
    for travel, is_current in (
        (TimeTravel(version=first), False),
        (TimeTravel(version=str(first)), False),
        (TimeTravel(version="v1"), False),
        (TimeTravel(timestamp_us=moment), False),
        (TimeTravel(version="audit"), True),
        (TimeTravel(version="main"), True),
    ):
        opened = await open_table(world, "ann", table, travel)
        assert opened.snapshot_id == first, travel
        assert (b"extra" in opened.schema) == opened.is_current_schema == is_current, travel
        assert len((await (await world.open("ann")).plan(opened, (1,), TRUE)).files) == 1
    for wrong in (TimeTravel(version=7), TimeTravel(version="nothing"), TimeTravel(timestamp_us=1)):
        with pytest.raises(SqlError, match=r"no such snapshot|no snapshot as old"):
            await open_table(world, "ann", table, wrong)


async def test_views_are_opened_by_their_query_for_spark(world: World):
    table = await world.make_table()
    view = await world.make_view(world.fresh("v"), f"SELECT region FROM {table}", ["region"])
    opened = await (await world.open("ann")).open_name(name_of(view), None)
    assert isinstance(opened, OpenedView)
    assert (opened.columns, opened.default_catalog, opened.default_namespace) == (("region",), "lake", NS)
    other = await world.make_view(world.fresh("v"), "SELECT 1 AS region", ["region"], dialect="trino")
    with pytest.raises(NotAllowed, match="dialect of Spark"):
        await (await world.open("ann")).open_name(name_of(other), None)
    with pytest.raises(NotAllowed, match="no history"):
        await (await world.open("ann")).open_name(name_of(view), TimeTravel(version="main"))
    with pytest.raises(NoSuchRelation):
        await (await world.open("eve")).open_name(name_of(view), None)


async def test_the_gateway_reads_mapping_tables_with_its_own_rights_only(world: World):
    table = await world.make_table()
    session = await world.open("ann")
    with pytest.raises(PolicyHides, match="own principal"):
        await session.open_as_gateway(name_of(table))


async def test_lists_are_the_users(world: World):
    table = await world.make_table()
    ann, eve = await world.open("ann"), await world.open("eve")
    assert (*NS, table) in [each.name async for each in ann.list_tables("lake", NS)]
    assert NS in [each.name async for each in ann.list_namespaces("lake", ())]
    with pytest.raises(NoSuchRelation):
        assert [each async for each in eve.list_tables("lake", NS)] == []
