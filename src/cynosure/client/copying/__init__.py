"""Tables, views and namespaces of one catalog copied into another, with files of their own.

- `copying.py`            drives it: what is chosen, what is in the way, one object after the other
- `ends.py`               both catalogs, as the copy asks them
- `state.py`              a table's metadata: what cannot be copied, and what the copy's say
- `paths.py`              where each file goes
- `table_files.py`        all files of a table, snapshot by snapshot
- `transfers.py`          one file: read, written, or there already (`reading.py`: what may be read)
- `position_deletes.py`, `vectors.py`   files that name other files: rewritten

It promises: nothing is changed in the catalog that is copied from; in the other one a table is there when all
of its files are, or not at all; and the same command goes on where another one was cut off.
"""
