"""The kinds of remotes, each behind the port of `federation.remote`.

- `rest/`               catalogs that speak Iceberg's REST protocol
- `pointer_remote.py`   a remote made of one that only keeps pointers (`federation.pointers`)
- `hive/`, `glue/`, `sql/`   those; `metadata_files.py`, `settling.py`: their files, and lost answers
- `aws_keys.py`         keys to sign with, set by an operator or those of a role
- `opening.py`          which of them a connection means

A maintainer must not break: a client of a remote knows its connection, its secrets and its settings. It never
looks at the environment, at files of a home directory or at instance metadata.
"""
