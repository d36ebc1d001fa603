"""SQLite: the embedded default. One file, durable, usable by several processes of one machine.

Read in this order: `backend.py` (who runs what on which thread), `writer.py` (group commit of the file),
`loop_reader.py` (reads that cost microseconds), `connection.py` (whose file it is, and set-up),
`same_file.py` (a file deleted or replaced in use), `statements.py` (all SQL), `faults.py` (what a driver
error means for the outcome).

A maintainer must not break: every write goes through the writer thread, and a group is acknowledged only
after its COMMIT returned.
"""

from cynosure.persistence.backends.sqlite.backend import SqliteBackend, open_backend

__all__ = ["SqliteBackend", "open_backend"]
