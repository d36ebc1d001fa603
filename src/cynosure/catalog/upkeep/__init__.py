"""Policies that run: attached `system.*` policies become tasks of the delegation service.

- `rules.py`      what a policy means: which task, when, with which instructions
- `runs.py`       what was ordered and what became of it, per table and kind of task
- `ends.py`       what became of tasks under way
- `survey.py`     which policies count for which tables
- `facts.py`      what is read of a table to know whether a task is worth it
- `assess.py`     what is to be done now, and why all else is not: the plan
- `ordering.py`   a task as it is ordered
- `scheduler.py`  does what the plan says, from time to time, on one of all servers
- `metrics.py`    what is counted
- `plan_maintenance.py`, `list_maintenance.py`, `order_maintenance.py`  the operations

What the keys of a policy may be: `policies/maintenance_config.py`, `policies/windows.py`.

Must not break: the plan that people are shown and the one that is carried out are made by the same
code; and the same table, kind and due time is one task, whoever orders it, however often.
"""
