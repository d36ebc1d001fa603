"""Names, versions, views and settings: no way around a policy, and no word about what it hides.

In the gateway under every kind of filter; on Spark a share, and all of it with CYNOSURE_SOAK_GOVERNED=1.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.login import Credential, Login
from cynosure.testing.query_server import API, run_to_end
from tests.query.redteam.test_errors import IS_SOAK
from tests.query.redteam.vault import FILTERS, HIDDEN, SHOWN, Vault

pytestmark = pytest.mark.anyio

METADATA = (
    *("snapshots", "history", "refs", "files", "data_files", "delete_files", "all_data_files"),
    *("all_delete_files", "all_files", "entries", "all_entries", "manifests", "all_manifests"),
    *("partitions", "position_deletes", "metadata_log_entries"),
)
REFUSED = (
    # Where rows come from.
    "SELECT _file FROM {t}",
    "SELECT _pos FROM {t}",
    "SELECT _metadata FROM {t}",
    "SELECT _partition FROM {t}",
    "SELECT _row_id FROM {t}",
    "SELECT input_file_name() FROM {t}",
    "SELECT input_file_block_start() FROM {t}",
    "SELECT spark_partition_id() FROM {t}",
    "SELECT monotonically_increasing_id() FROM {t}",
    "SELECT * FROM {t} TABLESAMPLE (100 PERCENT)",
    # Code, settings, other places.
    "SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM {t}",
    "SELECT java_method('java.lang.System', 'getProperty', 'user.dir')",
    "SET spark.sql.ansi.enabled = false",
    "RESET",
    "USE lake",
    "CACHE TABLE x AS SELECT * FROM {t}",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM {t}",
    "INSERT INTO {t} SELECT * FROM {t}",
    "SELECT '${{env:HOME}}' FROM {t}",
    "SELECT * FROM parquet.`/etc/hostname`",
    "SELECT * FROM text.`/etc/hostname`",
    "SELECT * FROM `file:///etc/hostname`",
    "SELECT * FROM read_csv_auto('/etc/hostname')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM '/etc/hostname'",
    # Names of engines.
    "SELECT * FROM cyn_0",
    "SELECT * FROM {t}, cyn_0",
    "SELECT * FROM {t}, `CYN_0`",
    "SELECT cyn_0.id FROM {t}",
    "WITH cyn_0 AS (SELECT 1 AS id) SELECT * FROM cyn_0, {t}",
    "WITH `Cyn_0` AS (SELECT 1 AS id) SELECT * FROM {t}",
    "SELECT a.id FROM {t} AS cyn_1, {t} AS a",
    # What counts hidden rows.
    "DESCRIBE HISTORY {t}",
    "SHOW PARTITIONS {t}",
    "SHOW TBLPROPERTIES {t}",
    "SHOW TABLE EXTENDED IN lake.ns LIKE 'scalar'",
    "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "EXPLAIN COST SELECT * FROM {t}",
    "EXPLAIN CODEGEN SELECT * FROM {t}",
    "EXPLAIN ANALYZE SELECT * FROM {t}",
    "EXPLAIN EXPLAIN SELECT * FROM {t}",
    # Names that only look the same.
    "SELECT * FROM lake.ns.\u0455calar",
    "SELECT * FROM lake.ns.scala\u0433",
    "SELECT * FROM {t}\u200b",
    "SELECT * FROM {t}\x00",
    "SELECT * FROM {t}; SELECT * FROM {t}",
    "SELECT * FROM lake.ns.`scalar.snapshots`",
)
FIVE = (
    "SELECT count(*) FROM {t}",
    "SELECT count(*) FROM {t} VERSION AS OF {snapshot}",
    "SELECT count(*) FROM {t} FOR VERSION AS OF 'main'",
    "SELECT count(*) FROM {t} TIMESTAMP AS OF '2999-01-01'",
    "SELECT count(*) FROM {t}.branch_main",
    "SELECT count(*) FROM {t}.snapshot_id_{snapshot}",
    "SELECT count(*) FROM {t} VERSION AS OF 'side'",
    "SELECT count(*) FROM {t} VERSION AS OF 'before'",
    "SELECT count(*) FROM {t}.branch_side",
    "SELECT count(*) FROM {t}.tag_before",
    "SELECT count(*) FROM lake.ns.`{n}` AS `x y`",
    "SELECT /*+ BROADCAST({n}), NO_MERGE */ count(*) FROM {t}",
    "SELECT /*+ MERGE(a, b) */ count(*) FROM {t} a JOIN {t} b ON a.id = b.id",
    "SELECT /* FROM lake.ns.plain */ count(*) -- nothing\nFROM {t} -- the end",
    "SELECT count(*)\u00a0FROM\u2003{t}",
    "SELECT count(*) FROM {t} WHERE 'x' = 'x' -- ' OR 1 = 1",
    "WITH {n} AS (SELECT 66 AS id) SELECT count(*) FROM {t}",
    "WITH c AS (SELECT * FROM {t}) SELECT count(*) FROM c",
    "WITH c AS (SELECT * FROM {t}), d AS (SELECT * FROM c) SELECT count(*) FROM d",
    "SELECT count(*) FROM (SELECT id, num FROM {t} UNION SELECT id, num FROM {t}) u",
    "SELECT count(*) FROM (SELECT wide FROM {t} UNION SELECT 1.0D) u",
    "SELECT count(*) FROM (SELECT wide FROM {t} UNION SELECT CAST(1 AS DECIMAL(10, 5))) u",
    "SELECT count(*) FROM (SELECT amount FROM {t} UNION SELECT big FROM {t} WHERE id < 6) u",
    "SELECT count(*) FROM {t} a LEFT JOIN {t} b ON a.id = b.id",
    "SELECT count(*) FROM {t} a FULL JOIN {t} b ON a.id = b.id AND b.id < 67",
    "SELECT count(*) FROM {t} WHERE NOT (id = 66) OR id IS NULL OR id = 66",
    "SELECT count(*) FROM {t} WHERE DIVISOR >= 0",
    "SELECT count(amount) FROM {t} WHERE amount = amount",
    "SELECT max(ID) FROM {t}",
    "SELECT max(big) FROM {t}",
    "SELECT max(n) FROM (SELECT count(*) AS n FROM {t}) x",
    "SELECT count(*) FROM (SELECT * FROM {t} ORDER BY big DESC LIMIT 100) x",
    "SELECT count(*) FROM lake.ns.over_{n}",
    "SELECT count(*) FROM lake.ns.over_over_{n}",
    "WITH {n} AS (SELECT 66 AS id), over_{n} AS (SELECT 1) SELECT count(*) FROM lake.ns.over_over_{n}",
)


async def check_five(vault: Vault, kind: str, statements: Sequence[str], controls: Sequence[str]) -> None:
    """That `mia` is shown five rows by each statement, and who sees everything is not by the controls."""

    def make(texts: Sequence[str]) -> list[str]:
        return [each.format(t=f"lake.ns.{kind}", n=kind, snapshot=vault.snapshots[kind]) for each in texts]

    asked = make(statements)
    for sql, found in zip(asked, await tables(vault, vault.mia, asked), strict=True):
        assert found == [len(SHOWN)], sql
    asked = make(controls)
    for sql, found in zip(asked, await tables(vault, vault.auditor, asked), strict=True):
        assert isinstance(found, list), (sql, found)
        assert found != [len(SHOWN)], sql


async def tables(vault: Vault, who: Credential, statements: Sequence[str]) -> list[Any]:
    """The first column of each, or why there is none; some at once."""
    turns = asyncio.Semaphore(4)

    async def one(sql: str) -> Any:
        async with turns, vault.scene.client(who) as http:
            found = await run_to_end(http, sql)
        return found if isinstance(found, dict) else found.column(0).to_pylist()

    return list(await asyncio.gather(*map(one, statements)))


@pytest.mark.parametrize("kind", FILTERS)
async def test_every_way_to_name_a_table_reads_what_its_reader_may_see(vault: Vault, kind: str) -> None:
    await check_five(vault, kind, FIVE, FIVE)


async def test_every_way_to_name_a_table_reads_what_its_reader_may_see_on_spark(spark: Vault) -> None:
    is_native = spark.scene.directory.name == "native"
    if IS_SOAK:
        for kind in FILTERS:
            await check_five(spark, kind, FIVE, FIVE)
    else:
        kind = ("existing", "listed")[is_native]
        await check_five(spark, kind, FIVE[2 + is_native :: 6], FIVE[2 + is_native :: 18])


async def test_views_over_masked_columns_see_masks(vault: Vault) -> None:
    scene = vault.scene
    assert await scene.rows(vault.mia, "SELECT points FROM lake.ns.renaming WHERE points > 0") == []
    assert len(await scene.rows(vault.auditor, "SELECT points FROM lake.ns.renaming WHERE points > 0")) == 3
    await scene.fails(vault.mia, "SELECT * FROM lake.ns.relation, lake.ns.plain")


async def test_what_could_tell_of_hidden_rows_is_refused_and_says_nothing(vault: Vault) -> None:
    await check_refused(vault)
    assert await vault.scene.rows(vault.auditor, "SELECT count(*) FROM lake.ns.scalar.snapshots") == [(1,)]


async def test_what_could_tell_of_hidden_rows_is_refused_and_says_nothing_on_spark(spark: Vault) -> None:
    if not IS_SOAK and spark.scene.directory.name != "native":
        pytest.skip("./dev soak governed: one leaf is enough for what no engine gets")
    await check_refused(spark)


async def check_refused(vault: Vault) -> None:
    scene = vault.scene
    for statement in REFUSED:
        sql = statement.format(t="lake.ns.scalar")
        failed = await scene.fails(vault.mia, sql)
        assert failed["code"] in (400, 404), (sql, failed)
        assert failed["fix"], (sql, failed)
        assert HIDDEN not in str(failed)
        assert "/etc" not in str(failed)
    for name in METADATA:
        for table in ("scalar", "masked"):
            failed = await scene.fails(vault.mia, f"SELECT * FROM lake.ns.{table}.{name}")
            assert "policies" in failed["details"], failed


async def test_metadata_from_manifests_is_for_who_sees_everything_on_spark(spark: Vault) -> None:
    sql = "SELECT count(*), sum(record_count), max(size(lower_bounds)) > 3 FROM lake.ns.scalar.files"
    assert await spark.scene.rows(spark.auditor, sql) == [(1, len(SHOWN) + 1, True)]
    failed = await spark.scene.fails(spark.mia, sql)
    assert "policies" in failed["details"], failed


async def test_descriptions_and_plans_say_nothing_of_hidden_rows_or_policies_constants(vault: Vault) -> None:
    await check_described(vault, *FILTERS, "masked")
    assert "files: 1" in await vault.scene.explain(vault.auditor, "SELECT * FROM lake.ns.scalar")


async def test_descriptions_and_plans_of_spark_say_nothing_of_hidden_rows_or_policies_constants(
    spark: Vault,
) -> None:
    is_native = spark.scene.directory.name == "native"
    chosen = (*FILTERS, "masked") if IS_SOAK else (("mapped", "masked")[is_native],)
    await check_described(spark, *chosen)


async def check_described(vault: Vault, *names: str) -> None:
    scene = vault.scene
    for table in names:
        name = f"lake.ns.{table}"
        texts = [
            str(await scene.rows(vault.mia, sql.format(t=name)))
            for sql in (
                "DESCRIBE EXTENDED {t}",
                "SHOW CREATE TABLE {t}",
                "SHOW COLUMNS IN {t}",
                "EXPLAIN SELECT * FROM {t}",
                "EXPLAIN EXTENDED SELECT * FROM {t}",
                "EXPLAIN FORMATTED SELECT count(*) FROM {t}",
            )
        ]
        for text in texts:
            for word in (HIDDEN, "'EU'", "'UK'", "file:", ".parquet", "files:", "bytes", "total-records"):
                assert word not in text, (table, word, text)


async def test_results_carry_no_more_than_values(vault: Vault) -> None:
    found = await vault.scene.query(vault.mia, "SELECT * FROM lake.ns.scalar")
    assert not found.schema.metadata
    assert not any(each.metadata for each in found.schema)
    async with vault.scene.client(vault.mia) as http:
        sent = await http.post(
            f"{API}/statements", json={"sql": "SELECT num FROM lake.ns.scalar", "wait": 10}
        )
        page = await http.get(sent.json()["results"], params={"wait": "30"})
        told = (await http.get(f"{API}/statements/{sent.json()['id']}")).json()
    assert set(told["progress"].values()) == {0}
    for text in (str(page.headers), page.text, str(told)):
        assert HIDDEN not in text
        assert "file:" not in text


async def test_policies_count_from_the_next_statement_on_and_roles_that_are_not_used_do_not_help(
    vault: Vault,
) -> None:
    scene = vault.scene
    data = await scene.query(vault.auditor, "SELECT id, num, divisor FROM lake.ns.plain")
    await scene.make_table("ns.changing", data)
    count = "SELECT count(*) FROM lake.ns.changing"
    assert await scene.rows(vault.mia, count) == [(6,)]
    first = await scene.restrict("ns.changing", filter="divisor <> 0", roles=["mia_role"])
    assert await scene.rows(vault.mia, count) == [(5,)]
    second = await scene.restrict("ns.changing", filter="id > 2")
    assert await scene.rows(vault.mia, count) == [(3,)]
    await scene.lift("ns.changing", first)
    assert await scene.rows(vault.mia, count) == [(4,)]
    await scene.lift("ns.changing", second)
    await scene.restrict("ns.changing", filter="id <= 2", **{"except-roles": ["auditor_role"]})
    # In two roles: what one of them restricts stays; the exception counts while its role is used.
    async with scene.catalog.client() as http:
        await Admin(http).assign_role("mia", "auditor_role")
    assert await scene.rows(vault.mia, count) == [(6,)]
    login = Login(scene.catalog.url, vault.mia, scope="PRINCIPAL_ROLE:mia_role")
    async with scene.client(vault.mia, auth=login) as narrow:
        sent = await narrow.post(f"{API}/statements", json={"sql": count, "wait": 10})
        page = await narrow.get(sent.json()["results"], params={"wait": "30"})
    assert page.json()["rows"] == [[2]]
    async with scene.catalog.client() as http:
        await Admin(http).take_role("mia", "auditor_role")
    assert await scene.rows(vault.mia, count) == [(2,)]


async def test_a_column_that_was_renamed_stays_masked_and_filtered(vault: Vault) -> None:
    scene = vault.scene
    data = await scene.query(vault.auditor, "SELECT id, num FROM lake.ns.plain")
    table = await scene.make_table("ns.renamed", data)
    before = table.current_snapshot().snapshot_id

    def rename() -> None:
        with table.update_schema() as update:
            update.rename_column("num", "code")

    await asyncio.to_thread(rename)
    await scene.restrict("ns.renamed", columns={"code": "mask-alphanum"})
    await scene.restrict("ns.renamed", filter="id < 66")
    for sql in (
        "SELECT code FROM lake.ns.renamed WHERE id = 1",
        f"SELECT num FROM lake.ns.renamed VERSION AS OF {before} WHERE id = 1",
        f"SELECT max(num) FROM lake.ns.renamed VERSION AS OF {before}",
    ):
        assert await scene.rows(vault.mia, sql) == [("n",)], sql


async def test_who_may_not_read_hears_the_same_as_of_what_is_not_there(vault: Vault) -> None:
    scene = vault.scene
    beggar = await scene.create_user("beggar", Grant("NAMESPACE_LIST"))
    shapes = (
        *("SELECT * FROM {t}", "SELECT * FROM {t}.snapshots", "DESCRIBE {t}", "EXPLAIN SELECT 1 FROM {t}"),
        *("SELECT * FROM {t} VERSION AS OF 1", "SHOW CREATE TABLE {t}"),
        "SELECT 1 FROM {t} WHERE nothing = 1",
    )
    for shape in shapes:
        one = await scene.fails(beggar, shape.format(t="lake.ns.scalar"))
        other = await scene.fails(beggar, shape.format(t="lake.ns.absent"))
        assert str(one).replace("scalar", "absent") == str(other), shape
        assert one["code"] == 404
