"""The places of a table, and its files named relative to them.

A maintainer must not break: what `locate` returns is below one of the places, whatever it is given.
"""

from collections.abc import Sequence

from cynosure.common.errors import BadInput
from cynosure.storage.location import Location

Named = tuple[int, str]
"""A file: the number of its place, and its path below."""


class Places:
    """Places, none inside another one."""

    def __init__(self, places: Sequence[Location]) -> None:
        outermost: list[Location] = []
        for place in sorted(set(places), key=lambda each: (len(each.segments), each.key())):
            if not any(place.is_within(other) for other in outermost):
                outermost.append(place)
        self.all: tuple[Location, ...] = tuple(outermost)

    def find(self, text: str) -> Named | None:
        """The file that somebody wrote a location of; `None` when it is outside, or can be no file."""
        try:
            location = Location.parse(text)
        except BadInput:
            return None
        return self.name(location)

    def name(self, location: Location) -> Named | None:
        """As `find`, of a location."""
        for number, place in enumerate(self.all):
            depth = len(place.segments)
            if len(location.segments) > depth and location.is_within(place):
                return number, "/".join(location.segments[depth:])
        return None

    def locate(self, named: Named) -> Location:
        """Where the file is. `BadInput` for what names none."""
        number, path = named
        if not 0 <= number < len(self.all) or not path:
            raise BadInput("There is no such place", field="place", fix="Plan again.", place=number)
        return self.all[number].child(*path.split("/"))
