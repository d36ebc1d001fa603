"""What can go wrong with files. HTTP statuses are in `cynosure.api.errors`, as for every error.

A maintainer must not break: a timeout or a lost connection is `StorageUnavailable`, never "missing" and never
"refused". Unlike a commit, a file whose write has an unknown outcome is harmless: nothing refers to it yet,
and a file that nothing refers to is swept.
"""

from cynosure.common.errors import CynosureError, NotFound, Unavailable


class FileMissing(NotFound):
    """There is no file at this location."""


class StorageUnavailable(Unavailable):
    """The storage did not answer in time or failed. Trying again is safe."""


class StorageRefused(CynosureError):
    """The storage or our own rules refuse: wrong credentials, missing rights, a place that is not allowed."""
