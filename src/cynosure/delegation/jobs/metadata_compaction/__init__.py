"""METADATA_COMPACTION: many small manifests become few, sorted by partition.

- `job.py`       what the order says; in the worker
- `on_spark.py`  Iceberg's `rewrite_manifests`; in the driver
"""
