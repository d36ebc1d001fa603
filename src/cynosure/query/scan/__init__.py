"""The governed scan: `ScanTask` ─► Arrow batches of what its user may see. The only code that touches rows.

    read (field ids, evolution, defaults, promotion) ─► deletes ─► row filter on original values ─► masks
      ─► projection

- `port.py`         what a scan is watched by; `governed.py` a task's batches: start here
- `prepared.py`     a task, read and checked once
- `opening.py`      files of a task, below its places, with its credentials; `parquet.py` one file of them
- `shape.py`        a file's columns as the table has them now; `primitives.py` their values
- `complete.py`     the complete path: every kind of file, by Arrow; `row_groups.py` what it can skip
- `fast.py`         plain columns, by DataFusion; `pushed.py` what it may evaluate itself, `bounded.py` how
                    long it is waited for
- `row_filter.py`   expressions over columns; `masks.py`; `deletes/`
- `memory.py`       what may be held, by all scans of a process together

A maintainer must not break: the order above; that whatever cannot be read exactly is an error and never a
batch; and that nothing here knows a statement, a policy, a user or a catalog (import contract).
"""
