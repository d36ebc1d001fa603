"""The Iceberg REST catalog protocol: every operation parses, calls one operation of `catalog`, encodes.

- `routes.py`       all of them as routes; the config operation advertises exactly these
- `context.py`      who asks, of which catalog, about what
- `access_delegation.py`   whether access to files is asked for
- `access.py`, `credentials.py`, `signing.py`   how it is given
- `wire.py`         bodies and queries as the protocol spells them
- `namespaces.py`, `tables.py`, `commits.py`, `views.py`, `plans.py`, `reports.py`, `config.py`   handlers

Must not break: names come percent-decoded per segment, so a name may hold a slash; nothing here splits or
joins paths.
"""
