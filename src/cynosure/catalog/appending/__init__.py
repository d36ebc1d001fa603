"""Appends to one table by many at once: none conflicts, and those that come together share a commit.

- `draft.py`      a table on its way to its next version, with the manifests and lists that are to be written
- `addition.py`   files or manifests that the append endpoint was sent, and how they become a snapshot
- `moving.py`     standard commits that append, placed behind the commits of others (opt-in)
- `work.py`       one change for some of these; `together.py` commits it for all who asked

Turns at a table, where those who come together meet, are in `catalog/joining.py`. The rules, without any
I/O, are in `iceberg/appending`.

A maintainer must not break: whatever is prepared here is prepared again on a newer state when the table has
changed, and only what is committed keeps its files.
"""
