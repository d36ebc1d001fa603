"""How our processes talk to our servers: HTTP with retries that cannot apply anything twice.

- `http.py`       one server: deadlines, retries, errors of our tree
- `retry.py`      which failures may be tried again
- `errors.py`     error envelopes back into our error tree
- `tokens.py`     bearer tokens, renewed before they expire; `api.py` requests that carry them
- `management.py`, `catalog.py`   the management API and the Iceberg REST API, call by call
- `profiles.py`   servers that a user knows by name
- `operator.py`   the operator socket of a server on this machine
- `documents.py`  public documents of other parties' servers
- `unix_socket.py`, `tls.py`   the ways to reach it

A maintainer must not break: a request whose outcome is unknown is never sent again unless it is
idempotent; the caller gets `OutcomeUnknown`. This room imports `common` (and later `iceberg`) only.
"""
