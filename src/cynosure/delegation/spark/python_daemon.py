"""What executors fork Python's workers from, with all jobs at hand (`cynosure.spark.python_daemon`).

    python -m cynosure.delegation.spark.python_daemon pyspark.worker      started by Java, never by hand

A maintainer must not break: importing a job starts no thread.
"""

from cynosure.delegation.spark.driver_jobs import JOBS
from cynosure.spark.python_daemon import serve

if __name__ == "__main__":
    serve(("obstore.store", *sorted({place.partition(":")[0] for place in JOBS.values()})))
