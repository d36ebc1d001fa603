"""Tasks of one realm: every version of them, who has which until when, and receipts of what they did.

- `port.py`      what a store must do; kit: `cynosure.testing.task_store_kit`
- `open.py`      which store a URL means
- `objects.py`   any store of ours: one commit to the realm's `tasks` reference for each change;
  `task_index.py` is what that reference holds, `stored.py` the form of a version
- `postgres.py`  tables, as the proposal has them; `postgres_statements.py`, `postgres_rows.py`
- `waiting.py`   what both have in common; `lost_answers.py` leases that may have been given

A maintainer must not break: a lost race is a value, and an unknown outcome is looked up, never done again.
"""
