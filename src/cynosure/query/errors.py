"""Why a statement is not answered.

A maintainer must not break: no message and no detail holds a value of a row, a constant of a policy, a path
of a file or a credential. What an engine says goes through `query.coordinator.scrubbing` first.
"""

from typing import Any

from cynosure.common.errors import BadInput, CynosureError, Forbidden, Unavailable


class SqlError(BadInput):
    """The statement is wrong: where, and what to do."""

    def __init__(
        self, message: str, *, fix: str = "", line: int = 0, column: int = 0, **details: Any
    ) -> None:
        place = {"line": line, "column": column} if line else {}
        super().__init__(message, field="sql", fix=fix, **place, **details)
        self.line = line
        self.column = column

    def put_at(self, line: int, column: int) -> None:
        """Say where, unless that is said."""
        if not self.line:
            self.line, self.column = line, column
            self.details |= {"line": line, "column": column}


class NotAllowed(SqlError):
    """A statement, function or setting that governed SQL does not have."""


class NoSuchRelation(SqlError):
    """No such table, or none that this user may see: which of both is not told."""


class QueryFailed(CynosureError):
    """The statement ran, and failed on what it says: a division by zero, a text that is no number.

    `condition` is the engine's name of it (DIVIDE_BY_ZERO); values are not told.
    """

    def __init__(self, message: str, *, condition: str = "", fix: str = "", **details: Any) -> None:
        super().__init__(message, fix=fix, **({"condition": condition} if condition else {}), **details)
        self.condition = condition


class ScanBroken(QueryFailed):
    """A scan failed in a way that nobody foresaw: not on what the statement says, which no scan evaluates."""


class QueryCancelled(CynosureError):
    """Somebody ended the statement."""


class DeadlinePassed(CynosureError):
    """The statement took longer than it may."""


class OutOfMemory(CynosureError):
    """A scan, or an engine, would need more memory than it may."""


class NotReadable(CynosureError):
    """Files of a table are not what they must be, or of a kind that is not read: nothing is answered."""


class EngineUnavailable(Unavailable):
    """No engine can run this now."""


class QueueFull(EngineUnavailable):
    """As many statements wait as may: this one was not taken."""


class PolicyHides(Forbidden):
    """A policy that cannot be applied hides the table; says which, so that it can be corrected."""
