"""ORPHAN_FILE_REMOVAL: old files in a table's places that no version of the table knows.

- `job.py`           the job
- `instructions.py`  what an order may say besides
- `liveness.py`      which files are alive: of all snapshots, and of tables that can be restored
- `on_spark.py`      listing and expanding on Spark, for large tables

A maintainer must not break: a file is deleted only if it is old, and nothing named it after the listing and
again right before it goes; and nothing is deleted while a manifest cannot be read.
"""
