"""Arrow data into files of a table, ready to be appended (`cynosure.client.append`).

- `target.py`         what a writer must know of a table
- `arrow_types.py`    Iceberg's types in Arrow, with field ids
- `conform.py`        a caller's batches in exactly the table's columns
- `partitions.py`     batches divided by the partition that their rows belong to
- `options.py`        what table properties say about files; `layout.py` where they lie
- `metrics.py`        what a Parquet file says about its columns, as Iceberg keeps it
- `parquet_file.py`   one file; `file_set.py` all files of an append, a bounded number open at a time
- `writing.py`        all of it for one append; `local_files.py` files of this machine as its input
- `stores.py`         files of this machine and of object stores, with credentials of the catalog,
  or in `signed_files.py` with requests that it signs

Needs pyarrow, which is an extra (`append`), so nothing else in this room imports it at its top.

A maintainer must not break: no row is lost or changed on its way. What does not fit a column of the table is
refused with the column's name, before a file that holds it can be referred to.
"""
