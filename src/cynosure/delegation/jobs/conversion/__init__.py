"""FORMAT_CONVERSION: a newer format version, or a directory of Parquet files that becomes a table.

- `job.py`           what the order says; in the worker
- `on_spark.py`      both conversions; in the driver
- `found_files.py`   which files there are below a place, and the partitions that their paths name
- `footers.py`       what Parquet files say about themselves; on executors
- `new_schema.py`    columns of Parquet files as columns of a table
- `reach_files.py`   a file system for a place, with what the catalog gave
"""
