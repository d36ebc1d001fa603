"""Governed SQL: rows of Iceberg tables as one user may see them, and nothing else, by any trick.

    statement ─► coordinator ─► sql            parsed, allowed, bound; what each mention of a table needs
                     │       ─► catalog_access resolved and planned on behalf of the user
                     │       ─► relations      one per mention: scan tasks with filter, masks, credentials
                     └─► an engine (`engine.py`)  local: DuckDB in this process;  spark: a driver of its own
                              └─► scan          ScanTask ─► governed batches: the only code that touches rows

- `scan_task.py`     what a scan is told; `arrow_types.py` the types that engines get
- `scan/`            read, deletes, row filter on original values, masks, projection, whitelisted predicates
- `stream/`          frames between the gateway and scans on executors; `broker/` the gateway's end, `worker/`
                     theirs; `refreshing.py` newer credentials for scans that run
- `sql/`             text to a checked and bound tree, without any I/O
- `engine.py`        port of engines; `local/` DuckDB, `spark/` Spark with its two leaves
- `catalog_access/`  the catalog as one user's statement sees it
- `coordinator/`     statements from their arrival to their end
- `settings.py`, `errors.py`

A maintainer must not break: an engine sees governed batches only. Whatever a user wrote runs above the scan,
and nothing but whitelisted predicates (`scan_task.py`) gets into it. The import contracts in `pyproject.toml`
hold that: the scan knows no statements, policies or users, and the coordinator knows no readers.
"""
