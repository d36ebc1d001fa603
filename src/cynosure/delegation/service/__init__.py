"""What can be asked for of tasks, one file each. Start with `service.py`.

- `service.py`     all of it together; `context.py` what every operation has
- `submit.py`, `find.py`, `list_tasks.py`, `wait.py`, `retry.py`, `cancel.py`   the operations
- `settling.py`    changes of a task whose answers get lost
- `changes.py`     who waits in this process is told at once
- `details.py`     a record of the store as it is told about

Must not break: HTTP is not known here, and whoever calls has been allowed to.
"""
