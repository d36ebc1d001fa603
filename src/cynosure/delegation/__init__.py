"""Long work: tasks that are leased, retried and finished, in this process or in a service of its own.

- `store/`        the tasks, every version of them: the port and two implementations
- `task_record.py` one version of a task; `transitions.py` which state may follow which, and how
- `service/`      what can be asked for: submit, wait, find, list, retry, cancel
- `worker/`       leases tasks, keeps the leases, runs jobs, records what became of them
- `jobs/`         the work itself, one package for each kind of task
- `spark/`        Spark: jars, sessions, the driver in a process of its own
- `catalog_access.py`  the catalog as a worker sees it: `access_http.py`, `access_local.py`
- `failures.py`, `metrics.py`   how a job says that it could not; what is counted
- `executors/`    the catalog's `TaskExecutor`: local or delegated

The words both sides share are in `cynosure.common.delegated`; HTTP is in `cynosure.api.delegation`; policies
that order tasks are in `cynosure.catalog.upkeep`.

A maintainer must not break: nothing is deleted without a lease that was checked right before; no credential
is stored; and a task that was accepted ends, whoever is killed meanwhile.
"""
