"""The work itself: one package for each kind of task.

- `port.py`          the contract between a worker and a job; `registry.py` all jobs, by kind
- `instructions.py`  what an order says besides, read and checked
- `on_table.py`      what jobs on Spark have in common: the right table, its lease, the driver
- `purge/`, `orphans/`   deletions, in process or on Spark; `live_files/` what both know of a table's files
- `compaction/`, `metadata_compaction/`, `expiry/`, `conversion/`   Iceberg's own procedures, on Spark

Modules called `on_spark.py` run in the driver's process (`delegation/spark/driver_jobs.py` names them).

Must not break: a job runs again after it was killed at any point, and finds what was done.
"""
