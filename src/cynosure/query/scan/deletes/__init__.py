"""Deletes of Iceberg: which rows of a data file are gone.

- `loading.py`     read when they are first needed, kept while files need them
- `applied.py`     all deletes of one data file together
- `positions.py`   files that name rows by file and place (v2)
- `vectors.py`     deletion vectors: a bitmap of places in a Puffin file (v3)
- `equality.py`    files that name rows by values

Which deletes apply to which file (sequence numbers, partitions) is decided by whoever planned the scan.

A maintainer must not break: a delete that cannot be read, or does not fit its data file, is an error. Rows
that were deleted must not come back because a file is damaged.
"""
