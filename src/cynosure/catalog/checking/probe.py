"""The files of a check: below a name in the location that no table has or gets.

Must not break: `everything` names all that any step may write, because that is what is removed at the end.
"""

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from cynosure.storage.location import Location

PREFIX: Final = ".cynosure-check-"
CONTENT: Final = b"A check of this storage by cynosure. It may be deleted.\n"
OTHER_CONTENT: Final = b"Written by the second of two writers.\n"


class Probe(NamedTuple):
    """Where a check works, below one location."""

    directory: Location
    """To be listed."""
    file: Location
    inside: Location
    """A directory that credentials are asked for."""
    beside: Location
    """One that they must not open, with a name that a careless rule would match too."""

    def everything(self) -> Sequence[Location]:
        """All files that a check may have made."""
        if self.directory == self.inside:
            return (self.file,)
        places = (self.inside, self.beside)
        return (self.file, *(place.child(name) for place in places for name in ("own", "client")))


def make_probe(location: Location, rng: random.Random) -> Probe:
    """Files for a check, under a name that is used once."""
    name = f"{PREFIX}{rng.getrandbits(64):016x}"
    if location.scheme == "file":
        # Deleting a file leaves its directory, so there is none but the location itself.
        return Probe(location, location.child(name), location, location)
    directory = location.child(name)
    return Probe(directory, directory.child("file"), directory.child("table"), directory.child("table2"))
