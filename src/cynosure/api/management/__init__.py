"""The management API, `/api/management/v1`: catalogs, principals, roles and grants, as Apache Polaris has it.

- `wire.py`, `wire_catalogs.py`   bodies and queries, under the names of the Polaris document
- `storage.py`                    storage configurations between the wire and the store
- `catalogs.py`, `principals.py`, `principal_roles.py`, `catalog_roles.py`, `grants.py`   the handlers
- `tasks.py`                      long work, for operators
- `explaining.py`, `checking.py`, `own.py`, `events.py`, `discovery.py`   beyond Polaris, below `/cynosure`
- `routes.py`                     all of it

A maintainer must not break: secrets leave only in the answers of create, rotate and reset, and never come
back from what was stored. Fields that the document leaves out may also be sent as null; some clients do.
"""
