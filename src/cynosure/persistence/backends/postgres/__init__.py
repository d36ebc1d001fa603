"""PostgreSQL: for several servers on one store.

Read in this order: `backend.py` (the contract, one statement per call), `turns.py` (turns at a contended
reference), `sessions.py` (connections and set-up), `statements.py` (all SQL), `faults.py` (what an error
means for the outcome), `address.py` (URL and options).

A maintainer must not break: a reference and the rows it leads to become visible in one transaction, and
no message or representation shows the password of the URL.
"""

from cynosure.persistence.backends.postgres.opening import open_backend

__all__ = ["open_backend"]
