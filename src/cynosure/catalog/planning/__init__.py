"""Scans planned by the server: which files a query has to read, in pages.

- `request.py`   what a client asks for, checked against the table: a `Scan`
- `viewer.py`    who asks, and what a plan must not tell them
- `parts.py`     a long plan cut into parts, by the counts of the manifest list alone
- `planner.py`   one scan of one version of a table, page by page: start here
- `encoding.py`  files and residuals as JSON
- `stored.py`    plans that outlive their first answer; ids and tasks of them
- `../recent_plans.py`   plans that are still being made, and those made last
- `opening.py`   from a name, an id or a task to a planner, with every right checked now
- `access.py`    credentials that go with a plan

A maintainer must not break: a plan is of one version of a table for ever, but who may see it, and what of it,
is decided anew for every answer.
"""
