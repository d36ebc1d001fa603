"""Catalogs: what can be asked of them, and how their tables and views are kept.

- `operations/`     one file per operation; start with `load_table.py` and `commit_table.py`
- `directory.py`    the catalogs of a realm by name; `opened.py` one of them, ready for operations
- `targets.py`, `seeing.py`, `filtering.py`, `guards.py`   what the authorizer is asked about, and what a
                    refusal or a list may tell; `recent_permits.py` what need not be asked again
- `policies/`       what is attached to what, and what applies where; `policy_types.py`, `attaching.py`
- `restrictions/`   what somebody may not see of a table, and that they get it by no other door
- `roles/`          catalog roles, grants and who has them
- `names.py`, `resolve.py`   names, their keys, and looking them up
- `locations.py`, `claims.py`, `file_references.py`   where files may be, and the places that each table holds
                    to itself; `staged.py` those of tables that are being created
- `file_access/`    giving clients access to files; `checking/` whether a storage works for them and for us
- `entities.py`, `managed/`   what the store holds of catalogs, namespaces, tables and views
- `generic/`        tables of other formats; `facade.py` what external catalogs refuse
- `files/`          metadata files in object storage: export, import, sweep
- `manifests/`      the manifests of a table, from memory (`recent_manifests.py`, `read_gate.py`) or storage
- `planning/`       scans planned for engines; `appending/`, `joining.py` files added, by many at once
- `shaping.py`      columns, partitioning and sort order by names, worked out on the current state
- `dropped.py`, `feed/`, `retention.py`, `reports.py`   undrop, change feed, expiry at commit, metrics reports
- `purging/`        tables dropped with their files; `cascading/` namespaces and catalogs with all they hold;
                    `dropping.py`, `restoring.py`, `closing.py` what single drops are made of
- `upkeep/`         policies that run
- `task_executor.py`   where long work is ordered (done: `cynosure.delegation`); `tasks.py` for operators
- `recalling.py`    how the result of a request comes back when it is asked for again with its key
- `bulk_import.py`  millions of tables at once; `maintenance.py` what servers do by themselves
- `errors.py`, `purge_errors.py`   what is refused; `settings.py`

A maintainer must not break: an operation takes its caller, knows nothing of HTTP, and learns of the state
only through the view that a commit gives it.
"""
