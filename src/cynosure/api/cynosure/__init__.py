"""Our own operations beside the Iceberg protocol, below `/api/catalog/cynosure/v1`.

- `routes.py`       all of them
- `dropped.py`      what was dropped, and restoring it; `dropped_table.py` one table of it
- `tombstones.py`   tables whose files are to go, for the service that deletes them
- `cascade.py`      dropping a namespace or catalog with all it holds
- `maintenance.py`  what policies make run, what was run, and tasks by hand
- `changes.py`      the change feed
- `append.py`       files that are written already
- `shape.py`        columns, partitioning and sort order by names
- `statistics.py`   the files of a table, counted
- `object_ids.py`   ids in paths

Must not break: what answers hold that must not be stored (credentials) says so.
"""
