"""A catalog's memory on any database that can compare and swap one row.

Immutable objects hold everything; one small *reference* per catalog or realm names the *head*, the
commit object that holds the current state. A change writes new objects, a new commit and swaps the
reference: atomic for any number of entities, cacheable without invalidation.

Read in this order:

- `spi.py`       what a database must do (rows of bytes, single-row CAS); kit: `cynosure.testing.backend_kit`
- `backends/`    one module per database
- `objects.py`   typed objects in rows: envelope, object types, unknown fields; `parts.py` splits large ones
- `cache.py`, `store.py`   decoded immutable objects, byte-weighted; the typed facade of one realm and catalog
- `heads.py`     linearizable head reads: answered at once, or shared by concurrent readers
- `index/`       ordered keys to values: a copy-on-write tree with a buffer of recent changes
- `commit/`      two-phase group commit, the only code that moves a reference
- `ids/`         snowflake ids and the node leases that keep them unique
- `tasks/`       at most one instance runs a coordinated task
- `gc/`          garbage collection: generation bump, exact mark, sweep
- `history/`     log, diff, state at a commit, restore, disaster reset, consistency check
- `bulk.py`, `sorted_runs.py`   a whole state at once, for imports of millions of entries

A maintainer must not break: a lost race is a value, a refusal is an error, an unknown outcome is
`OutcomeUnknown` (docs/invariants.md).
"""
