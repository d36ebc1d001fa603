"""Changes of a table's shape by names alone: the table chooses every id.

- `columns.py`        new columns
- `partitioning.py`   another partitioning
- `sort_order.py`     another sort order
- `name_mapping.py`   the property that maps names in files without ids
- `sources.py`        columns and transforms, as requests name them

Each makes standard updates (`iceberg/updates/shape.py`) for the state that it is given, so a change can be
worked out again on another state, and what two clients want at once does not conflict.

A maintainer must not break: ids are chosen as the reference implementation chooses them, from what the given
state says was assigned last; a request's own ids are never taken.
"""
