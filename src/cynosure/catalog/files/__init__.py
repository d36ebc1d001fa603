"""Metadata files in object storage: copies of what the store holds, for others to read.

- `export.py`      writing them while a commit is prepared, and removing those of attempts that lost
- `importing.py`   reading them: register, first load
- `sweep.py`       finding stray files that nobody could remove
"""
