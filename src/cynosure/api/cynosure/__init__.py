"""Our own operations beside the Iceberg protocol, below `/api/catalog/cynosure/v1`.

- `dropped.py`   what was dropped, and restoring it
- `changes.py`   the change feed
- `shape.py`     columns, partitioning and sort order by names
- `statistics.py`  the files of a table, counted
- `routes.py`    all of them
"""
