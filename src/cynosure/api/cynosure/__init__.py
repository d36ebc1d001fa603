"""Our own operations beside the Iceberg protocol, below `/api/catalog/cynosure/v1`.

- `dropped.py`   what was dropped, and restoring it
- `changes.py`   the change feed
- `routes.py`    all of them
"""
