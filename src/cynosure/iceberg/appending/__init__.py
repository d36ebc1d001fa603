"""Files added to a table: which commits may be moved behind others, and what is written for them.

- `request.py`         which standard commits are appends that may be placed on a newer state
- `own_manifests.py`   what a client's snapshot itself adds, and whether its manifests can be used as they are
- `merging.py`         which manifests become one, and with which entries
- `snapshot.py`        the new snapshot and its manifest list; how both are written: `writing.py`
- `check_files.py`     whether files that somebody wants to add can belong to the table
- `removals.py`        removing snapshots while others append

It promises: what is added is exactly what the client added, once, as if the client had read the table
just before. Nothing that another commit removed comes back, and nothing that it added is lost.
"""
