"""DATA_COMPACTION: many small files become few large ones, and deletes are applied.

- `job.py`       what the order says; in the worker
- `where.py`     what a condition and a sort order may be
- `on_spark.py`  Iceberg's `rewrite_data_files`, then what it leaves of deletes; in the driver
"""
