"""What lies in a place and is no file that a `Location` can name: for whoever empties the place.

Markers of directories (`x/` in an object store, empty directories of a machine), links, and names that
clients read in different ways. `FileIO.list` leaves them out, or cannot tell them from files.

A maintainer must not break: only what is below the place is touched, and a link is removed, not followed.
"""

from typing import Protocol, runtime_checkable

from msgspec import Struct

from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location


class Removed(Struct, frozen=True):
    """What was removed that had no name; markers are not counted."""

    files: int = 0
    bytes: int = 0


@runtime_checkable
class Unnamed(Protocol):
    """A storage that can have such things."""

    async def delete_unnamed(self, place: Location, *, with_markers: bool) -> Removed:
        """Delete what lies below a place and has no name; `with_markers`: markers of directories too."""
        ...


def find_unnamed(files: FileIO) -> Unnamed | None:
    """The storage inside all decorators, if it can have such things."""
    inner: object = files
    while inner is not None and not isinstance(inner, Unnamed):
        inner = getattr(inner, "inner", None)
    return inner
