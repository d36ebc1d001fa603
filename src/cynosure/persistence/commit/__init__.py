"""Two-phase group commit: the only code that moves a reference.

Start with `committer.py` (the loop), then `request.py` (what an operation hands in), `view.py` (what
it may ask of a state), `build.py` (a commit object out of a draft), `outcome.py` (lost answers).
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
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Prepared, Request
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
    "Prepared",
    "Request",
    "RequestRecord",
    "State",
    "View",
    "find_object",
]
