"""Statements on Spark: a driver in a process of its own, and leaves that give governed rows only.

    gateway                                   driver (child process)            executors
    engine.py ── job "query" over the line ─► jobs.py
                                              ├ a fresh session without catalogs (kind.py)
                                              ├ leaf.py: a view per relation ──► worker/mapped.py ─► broker
                                              ├ plan_check.py: nothing else is read
    receiving.py ◄── Arrow, Unix socket ────── sending.py

- `engine.py`       the port's `Engine` and `Cluster`; `run.py` one statement there; `receiving.py` its rows
- `sending.py`      rows out of the driver; `last_stage.py` which partitions they come from, in which jobs
- `config.py`       Spark's settings, and those that nobody can change
- `kind.py`         what the driver opens; `jobs.py` what it is asked; `python_daemon.py` for executors
- `leaf.py`         port of leaves; `isolated.py` and `native.py`; `opaque.py` what Catalyst sees of them
- `native_*.py`     the native leaf: `table` what it is told, `link` its inner session, `files` how they are
                    reached, `filter` and `masks` as expressions of Spark, `plan` what is checked, `failures`,
                    `limits` what our scan reads in its place
- `java_classes.py` classes of Java by their whole names
- `types.py`        Spark's type of each Iceberg type; `failures.py` what Spark raises, as our errors
- `explaining.py`   plans without what they must not show

A maintainer must not break: the session that a user's text runs in knows no catalog, no files and no
credentials; nothing of a statement is in another's session; what Spark says of an error is not passed on.
"""
