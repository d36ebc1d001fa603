"""Spark: drivers in processes of their own, and what their sessions need. Knows neither tasks nor statements.

- `keeper.py`          keeps one driver warm, starts a new one when it died, ends it when nobody needs it
- `driver_process.py`  the parent's end of a driver: its process, what it is asked, what it asks
- `driver.py`          the child: one session, several jobs at once, each in a thread
- `kinds.py`           what a driver is for: which session it opens, what its jobs have (`JobLink`)
- `wire.py`            what goes over the line between the two; `java_chain.py` what Java raised
- `session.py`         what sessions have in common; `environment.py` the variables of the process
- `python_daemon.py`   what executors fork Python's workers from
- `jars.py`            Iceberg for Spark: pinned, fetched once; `trust.py` whom Java trusts

Used by `delegation/spark` (work on tables) and `query/spark` (governed SQL).

A maintainer must not break: no credential is on a command line, in the environment or in a file of a
driver; it ends with its parent, and so does Java.
"""
