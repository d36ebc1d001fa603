"""How a job says that it could not do its work, where no error of the common tree says so.

A maintainer must not break: what is tried again, and what never is, is told by the type.
"""

from typing import Any

from cynosure.common.errors import CynosureError


class JobFailed(CynosureError):
    """The task cannot be done, now or ever: no further attempt is made.

    `code` is for programs (`TABLE_MISMATCH`, `CORRUPT_MANIFEST` …); `status` is what a request that waits for
    the task is answered with.
    """

    def __init__(self, message: str, *, code: str, status: int = 500, fix: str = "", **details: Any) -> None:
        super().__init__(message, fix=fix, **details)
        self.code = code
        self.status = status


class JobPostponed(CynosureError):
    """A passing trouble that no other error says: the task is tried again later."""

    def __init__(self, message: str, *, code: str, fix: str = "", **details: Any) -> None:
        super().__init__(message, fix=fix, **details)
        self.code = code
