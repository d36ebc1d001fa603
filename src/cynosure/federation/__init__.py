"""Other people's catalogs behind ours: their tables, our names, rights, credentials, policies and audit.

- `remote.py`        the port: what a remote catalog does; `remotes/` has its implementations
- `pointers.py`      the port of remotes that only keep where a table's metadata file is
- `operations.py`    the decorating catalog: each operation of a federated catalog as stages, in their order
- `seeing.py`        the mirror, brought up to what the remote has, before an operation looks there; tables,
                     views and namespaces alike: `seen_kinds.py`; how each catalog wants it: `policy.py`
- `stages/`          before the remote is asked, and behind it; one file each
- `aliases.py`       names that are alike but for case: those count that the remote lists
- `spelling.py`      whether a remote minds how a name is spelled that is new here
- `circles.py`       catalogs that stand for each other
- `mirror/`          what was last seen of the remote, in our store, as contents of the catalog
- `clients.py`       one client per connection; `guard/` is around each: limits, breaker, deadline, retries
- `status.py`        how a remote is; `diagnosing.py`: which field of a connection is wrong, and its fix
- `lists.py`         the remote's names, page by page; `turning.py` finds tokens that go round in circles
- `reconcile.py`     what the mirror has and the remote has not, or otherwise; its parts: `reconciling/`
- `list_waiting.py`, `forget_waiting.py`  restrictions that wait for tables of the remote
- `migration/`       a federated catalog becomes our own, or gives tables to another; `handover.py`: how far
- `maintenance.py`   what servers do by themselves; `settings.py`, `errors.py`

**The mirror is the idea.** What a remote answers is kept in the catalog's own store as if it had been
registered there (*backfilled*), and everything else is then done by the same operations as for our own
tables: rights, policies, row filters, credentials, scan plans, governed SQL, `snapshots=refs`, entity tags.
A remote table that was dropped and made anew has another uuid, so it becomes another entity, and old grants
do not apply to it.

A maintainer must not break: nobody causes a request to a remote who has no right to what it is about; what a
remote says is never believed beyond its own tables (locations, sizes, hosts, credentials); and no credential
comes from the environment.
"""
