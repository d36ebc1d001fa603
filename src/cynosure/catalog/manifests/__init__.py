"""The files of a table in its storage: manifest lists and manifests.

- `table_files.py`   the manifests of one version of a table, from memory (`recent_manifests.py`) or storage

What the bytes mean is in `iceberg/manifests`.

A maintainer must not break: no path is read on the word of a list alone. Each is inside what the table holds,
or refused; otherwise a list that somebody made up would show the files of another table.
"""
