"""Table and view metadata, managed in the store.

A table's state is one object with its scalars, properties, refs and newest entries; schemas that are large,
and chunks of older snapshots and logs, are objects of their own that hardly ever change. An answer is joined
from pre-encoded JSON; the metadata file in object storage is an export for others to read (`catalog.files`).

- `state.py`       stored form of a table, and the objects it points to
- `parts.py`       which pieces of a table are objects already, so that only new ones are written
- `sharing.py`     the same for versions that another catalog made
- `table.py`       a table in memory: state, metadata, answers
- `loading.py`     from the store into memory; `saving.py` back
- `recent.py`      tables in memory, bounded by bytes
- `answer.py`      what clients are told, and its ETag
- `view_state.py`  the same for views, which are small
"""
