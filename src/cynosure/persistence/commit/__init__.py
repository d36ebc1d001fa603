"""Two-phase group commit: the only code that moves a reference.

- `request.py`      what an operation hands in: `Request`, `Prepared`, and what comes of it
- `committer.py`    the loop: queue, group, swap, answer
- `preparing.py`    first phase: work a request out on a state; `view.py` is what it may ask of one
- `entry.py`        a request on its way, and the group it travels in
- `build.py`        second phase: one commit object out of a draft; `records.py` is its stored form
- `guarding.py`     other references that prepared work relied on
- `outcome.py`      lost answers; `recent_heads.py` earlier heads
- `recent_keys.py`  idempotency keys of a state; `key_log.py` is where they are
- `head_belief.py`, `arrivals.py`   what saves work: the known head, turns with others, waiting a moment
"""

from cynosure.persistence.commit.build import CommitLimits
from cynosure.persistence.commit.committer import Committer
from cynosure.persistence.commit.entry import Base, Counters
from cynosure.persistence.commit.records import (
    COMMIT,
    Change,
    Commit,
    CommitRecord,
    Holds,
    RequestRecord,
)
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Joined, Prepared, Request
from cynosure.persistence.commit.view import State, View, find_object

__all__ = [
    "COMMIT",
    "AlreadyCommitted",
    "Base",
    "Change",
    "Commit",
    "CommitLimits",
    "CommitRecord",
    "Committed",
    "Committer",
    "Counters",
    "Holds",
    "Joined",
    "Prepared",
    "Request",
    "RequestRecord",
    "State",
    "View",
    "find_object",
]
