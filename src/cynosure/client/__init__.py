"""How our processes talk to our servers: HTTP with retries that cannot apply anything twice.

- `http.py`       one server: deadlines, retries, errors of our tree
- `retry.py`      which failures may be tried again
- `errors.py`     error envelopes back into our error tree
- `tokens.py`     bearer tokens, renewed before they expire; `api.py` requests that carry them
- `changes.py`    changes, each under an Idempotency-Key that is held until there is an answer
- `idempotency.py`, `discovery.py`   keys; whether a server honours them, and for how long
- `management.py`, `catalog.py`, `policies.py`, `generic_tables.py`, `drops.py`, `tasks.py`, `maintenance.py`
                  the APIs, call by call; `delegation.py` that of a delegation service
- `query.py`      governed SQL at a gateway
- `shape.py`      columns, partitioning and sort order of a table, by names
- `appends.py`, `appending/`   Arrow data appended to a table (`append`)
- `profiles.py`   servers that a user knows by name
- `operator.py`   the operator socket of a server on this machine
- `documents.py`  public documents of other parties' servers
- `unix_socket.py`, `tls.py`   the ways to reach it

A maintainer must not break: a request whose outcome is unknown is never sent again unless it changes
nothing or carries a key that the server honours; the caller gets `OutcomeUnknown`. This room imports
`common` and `iceberg` only.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cynosure.client.appends import Appended, append

__all__ = ["Appended", "append"]


def __getattr__(name: str) -> Any:
    # Looked up when it is used: a command that appends nothing must not pay for the import.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cynosure.client import appends  # noqa: PLC0415

    return getattr(appends, name)
