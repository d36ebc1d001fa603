"""A table that Spark wrote, copied with `cynosure migrate --copy`: Spark reads the same rows, and goes on.

Holds I124.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from cynosure.testing.catalog_server import CatalogServer, RestCatalog
from tests.engines.spark.conftest import Sql, configure
from tests.federation.real.copied import migrate

LINEAGE = "SELECT id, _row_id, _last_updated_sequence_number FROM {} ORDER BY id"


def make_table(sql: Sql, name: str) -> None:
    """Position deletes, then deletion vectors; two partition specs, and a branch that differs."""
    modes = "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"
    sql(
        f"CREATE TABLE {name} (id BIGINT, data STRING, price DECIMAL(9, 2)) USING iceberg "
        f"PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version'='2', {modes})"
    )
    values = ", ".join(f"({at}, 'x{at % 3}', {at}.25)" for at in range(40))
    sql(f"INSERT INTO {name} VALUES {values}")
    sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    sql(f"ALTER TABLE {name} CREATE BRANCH side")
    sql(f"UPDATE {name}.branch_side SET data = 'changed' WHERE id < 4")
    sql(f"ALTER TABLE {name} ADD PARTITION FIELD data")
    sql(f"INSERT INTO {name} VALUES (900, 'late', 1.5), (901, 'late', 2.5)")
    sql(f"DELETE FROM {name} WHERE id IN (1, 25, 900)")


def test_spark_reads_a_copy_at_every_snapshot_and_deletes_more(
    sql: Sql,
    spark: SparkSession,
    name: str,
    catalog_server: CatalogServer,
    rest_catalog: RestCatalog,
    make_catalog: Callable[[], RestCatalog],
) -> None:
    make_table(sql, name)
    other = make_catalog()
    for key, value in configure(other, "copied").items():
        spark.conf.set(key, value)
    theirs, ours = (each.properties["warehouse"] for each in (rest_catalog, other))
    chosen = ("--table", name.removeprefix("c."))

    done = migrate(catalog_server, theirs, "--into", ours, "--copy", "--yes", *chosen)
    assert done["code"] == 0, (done["err"], done["objects"])

    copy = name.replace("c.", "copied.", 1)
    ids = [row[0] for row in sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at")]
    versions = [*ids, "'side'"]
    expected = [sql(f"SELECT * FROM {name} VERSION AS OF {each} ORDER BY id") for each in versions]
    rows = sql(LINEAGE.format(name))
    [location] = [row[1] for row in sql(f"DESCRIBE EXTENDED {name}") if row[0] == "Location"]
    shutil.rmtree(Path("/" + location.removeprefix("file:").lstrip("/")))

    assert len(ids) == 5
    assert [sql(f"SELECT * FROM {copy} VERSION AS OF {each} ORDER BY id") for each in versions] == expected
    assert [row[1] for row in expected[-1] if row[0] < 3] == ["changed"] * 3
    assert sql(LINEAGE.format(copy)) == rows
    sql(f"DELETE FROM {copy} WHERE id = 2")
    sql(f"INSERT INTO {copy} VALUES (5000, 'new', 2.5)")
    after = sorted(
        [row for row in expected[-2] if row[0] != 2] + sql(f"SELECT * FROM {copy} WHERE id = 5000")
    )
    assert sql(f"SELECT * FROM {copy} ORDER BY id") == after
