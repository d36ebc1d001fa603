"""Spark for delegated work: sessions with Iceberg's catalog, jobs with a lease. Drivers: `cynosure.spark`.

- `runner.py`          what jobs use: runs them in a driver that is kept warm, for as long as the lease holds
- `kind.py`            what such a driver opens and gives to jobs; `java_errors.py` Java's errors as ours
- `driver_jobs.py`     the functions that run there, by name
- `link.py`            what such a function has: session, lease, credentials, progress, receipts, the catalog
- `table.py`           one table there: Iceberg's procedures; `rest.py` the catalog's own API
- `session.py`         Spark's settings and the session
- `python_daemon.py`   what executors fork Python's workers from

A maintainer must not break: no credential is on a command line, in the environment or in a file of the
driver.
"""
