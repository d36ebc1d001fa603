"""Plain Spark in a process of its own: one line of JSON in, one out. Started by `spark_side.py`."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

_CONDITION = re.compile(r"\[([A-Z_]+)(?:\.[A-Z_]+)*\]")


def main(tables: Path, options: str) -> None:
    """Answer statements until there are no more."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", options)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        # For answers on few rows: compiling and re-planning cost far more than they bring.
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
        .config("spark.sql.warehouse.dir", str(tables / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for path in tables.glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            table = spark.sql(asked["sql"]).toArrow()
        except Exception as error:
            found = _CONDITION.search(str(error))
            said = {"condition": found[1] if found else "?", "text": str(error)[:2000]}
        else:
            with pa.OSFile(asked["out"], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            said = {"condition": ""}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
