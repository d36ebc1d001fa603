"""Catalog roles: what privileges in a catalog are granted to, and who has them. One file per operation.

- `lookup.py`     a role by its name; `changing.py` how a change to a catalog's `grants` is committed
- `securables.py` what a grant names, by name and by stable id; `granting.py` the change it makes
- `first_role.py` `catalog_admin`, which every catalog begins with
- `sweep_grants.py` removes what names something that is gone

A maintainer must not break: everything is stored under stable ids, so a rename keeps grants, and what is
created anew under an old name has none.
"""
