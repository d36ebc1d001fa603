"""The command line: `cynosure --help`.

- `main.py`       the commands, their groups, and how errors end
- `output.py`     errors, progress and results, for people and for programs
- `options.py`    flags that several commands share
- `operator.py`   commands that run in the server when there is one, otherwise here
- `serve.py`, `catalogs.py`, `tables.py`, `table_files.py`, `store.py`, `settings.py`, `certs.py`   the
  commands themselves

A maintainer must not break: modules here import nothing heavy at the top, because every call of the
command line pays for it; what a command needs it imports when it runs.
"""
