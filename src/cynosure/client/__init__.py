"""How our processes talk to our servers: HTTP with retries that cannot apply anything twice.

- `http.py`       one server: deadlines, retries, errors of our tree
- `retry.py`      which failures may be tried again
- `errors.py`     error envelopes back into our error tree
- `operator.py`   the operator socket of a server on this machine
- `unix_socket.py`, `tls.py`   the ways to reach it

A maintainer must not break: a request whose outcome is unknown is never sent again unless it is
idempotent; the caller gets `OutcomeUnknown`. This room imports `common` (and later `iceberg`) only.
"""
