"""Spark with Iceberg's catalog, and views in place of governance: what governed SQL is measured against.

    python -m benchmarks.views_process      one line of JSON in, one out: `Order`, then statements as texts

Such views protect nothing: whoever writes the statement can read the tables, and the optimizer looks through
them. They cost what filtering and masking cost, and nothing more.

A maintainer must not break: Spark has its own defaults, but for the number of threads and the heap, which are
those of the gateway's Spark.
"""

import os
import sys
import tempfile
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks.tpch_tables import NAMESPACE, write_view
from cynosure.spark.jars import find_jars

_CATALOG: Final = "spark.sql.catalog.lake"
_OURS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


class Order(Struct, frozen=True):
    """The first line."""

    master: str
    memory: str
    catalog: dict[str, str]
    """Properties of Iceberg's REST catalog, with credentials."""
    tables: tuple[str, ...]


class Rows(Struct, frozen=True):
    """The answer to a statement."""

    rows: list[list[str]]


def _open(order: Order) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(order.master).appName("views")
    jars = ",".join(map(str, find_jars()))
    scratch = tempfile.mkdtemp(prefix="cynosure-bench-")
    own = {
        **_OURS,
        "spark.jars": jars,
        "spark.driver.memory": order.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": scratch,
        "spark.local.dir": scratch,
    }
    for name, value in own.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    # Not before: what the builder gets is on a command line.
    for name, value in order.catalog.items():
        spark.conf.set(f"{_CATALOG}.{name}", value)
    spark.conf.set(_CATALOG, "org.apache.iceberg.spark.SparkCatalog")
    for table in order.tables:
        columns = spark.table(f"lake.{NAMESPACE}.{table}").columns
        spark.sql(write_view(table, columns)).createOrReplaceTempView(table)
    return spark


def main() -> None:
    """Answer until there is no more line."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # What Java prints is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = iter(sys.stdin.buffer.readline, b"")
    spark = _open(msgspec.json.decode(next(lines), type=Order))
    answers.write(b"{}\n")
    for line in lines:
        found = spark.sql(msgspec.json.decode(line, type=str)).toArrow()
        texts = [[str(value) for value in row.values()] for row in found.to_pylist()]
        answers.write(msgspec.json.encode(Rows(texts)) + b"\n")
    spark.stop()


if __name__ == "__main__":
    main()
