"""Catalogs: what can be asked of them, and how their tables and views are kept.

- `operations/`     one file per operation; start with `load_table.py` and `commit_table.py`
- `directory.py`    the catalogs of a realm by name; `opened.py` one of them, ready for operations
- `targets.py`, `seeing.py`, `filtering.py`, `guards.py`   what the authorizer is asked about, and what a
                    refusal or a list may tell; `recent_permits.py` what need not be asked again
- `roles/`          catalog roles, grants and who has them
- `names.py`, `resolve.py`, `locations.py`   names and locations, their keys, and looking them up
- `entities.py`, `managed/`   what the store holds of catalogs, namespaces, tables and views
- `files/`          metadata files in object storage: export, import, sweep
- `dropped.py`, `feed/`, `retention.py`, `reports.py`   undrop, change feed, expiry at commit, metrics reports
- `bulk_import.py`  millions of tables at once; `maintenance.py` what servers do by themselves
- `errors.py`       what is refused; `settings.py`

A maintainer must not break: an operation takes its caller, knows nothing of HTTP, and learns of the state
only through the view that a commit gives it.
"""
