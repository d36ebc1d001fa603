"""Namespaces and catalogs that are dropped with all they hold.

- `contents.py`  what is below a namespace, or in a catalog, in one state
- `plan.py`      what would go, and what is in the way
- `emptying.py`  drops it, by the very operations that drop one thing
- `drop_namespace.py`, `drop_catalog.py`, `explain.py`  the operations

There is no other right, no other trace and no other way back than of dropping everything one by one.

A maintainer must not break: what is created after a cascade began is not dropped by it. It is in the way in
the end, and the namespace or catalog stays.
"""
