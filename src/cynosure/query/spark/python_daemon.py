"""What executors fork Python's workers from, with the scan at hand (`cynosure.spark.python_daemon`).

    python -m cynosure.query.spark.python_daemon pyspark.worker      started by Java, never by hand

A maintainer must not break: importing these modules starts no thread.
"""

from typing import Final

from cynosure.spark.python_daemon import serve

MODULES: Final = (
    "pyarrow",
    "pyarrow.parquet",
    "pyarrow.compute",
    "cynosure.query.scan.governed",
    "cynosure.query.worker.mapped",
)

if __name__ == "__main__":
    serve(MODULES)
