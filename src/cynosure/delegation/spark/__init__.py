"""Spark: jars, sessions, and the driver in a process of its own.

- `runner.py`          what jobs use: starts the driver when it is needed, keeps one warm, ends it when idle
- `driver_process.py`  the parent's end of a driver: its process, what it is asked, what it asks
- `driver.py`          the child: one session, several jobs at once, each in a thread
- `driver_jobs.py`     the functions that run there, by name
- `link.py`            what such a function has: session, lease, credentials, progress, receipts, the catalog
- `table.py`           one table there: Iceberg's procedures; `rest.py` the catalog's own API
- `wire.py`            what goes over the line between the two; `java_errors.py` Java's errors as ours
- `session.py`         Spark's settings and the session; `environment.py` the variables of the process
- `python_daemon.py`   what executors fork Python's workers from
- `jars.py`            Iceberg for Spark: pinned, fetched once; `trust.py` whom Java trusts

A maintainer must not break: no credential is on a command line, in the environment or in a file of the
driver; it ends with its parent, and so does Java.
"""
