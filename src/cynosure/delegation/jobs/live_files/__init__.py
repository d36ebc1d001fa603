"""All files that a table knows of, of every snapshot, and all that lie in its places.

- `places.py`      the places of a table, and files named relative to them
- `references.py`  what the metadata document names directly
- `expanding.py`   manifest lists and manifests, each read once, into the files they name
- `scratch.py`     listed and referenced files side by side, on disk where they are many
- `patient.py`     a storage that is too busy now and then
- `listing.py`     what lies in the places
- `decoding.py`    manifests from bytes; `side_by_side.py` many at a time
- `own_files.py`   whether a table names only its own, where no credentials see to that
- `on_spark.py`    the same on Spark's executors

A maintainer must not break: a file is named by a place of the table and a path below it, so nothing that a
manifest, or anybody else, writes can name a file outside.
"""
