"""SNAPSHOT_EXPIRY: old snapshots go, with the files that nothing else needs.

- `job.py`       what the order says; in the worker
- `on_spark.py`  Iceberg's `expire_snapshots`; in the driver
"""
