"""Leases tasks, keeps the leases, runs jobs, records what became of them.

- `worker.py`   takes tasks until it is closed, several at once
- `attempt.py`  one of them: the job beside its heartbeat, and the record of its end
- `lease.py`    the lease, and every change of the task that it allows
- `context.py`  what a job has
- `outcome.py`  what an error means: tried again or given up, under which code

Must not break: only whoever holds the lease of a task records anything about it.
"""
