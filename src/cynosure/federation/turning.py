"""Finding out that a remote's page tokens go round in circles, with the memory of one token.

Brent's way: one token is remembered and compared with those that follow it; after 1, 2, 4, 8 … of them the
newest is remembered in its place. A circle of any length is found within three times around it. What is
remembered is small enough to travel in our own page tokens, so it works across requests and servers.
"""

import hashlib
from typing import Final

from msgspec import Struct

_MARK_BYTES: Final = 12


class Turning(Struct, frozen=True, array_like=True):
    """What is remembered of the tokens of one list so far."""

    mark: bytes = b""
    """Of the token that later ones are compared with."""
    steps: int = 0
    """How many came since."""
    reach: int = 1
    """After how many the newest takes its place."""

    def follow(self, token: str) -> "Turning | None":
        """With one more token; `None`: it was there before."""
        mark = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()[:_MARK_BYTES]
        if mark == self.mark:
            return None
        steps = self.steps + 1
        if steps >= self.reach:
            return Turning(mark, 0, self.reach * 2)
        return Turning(self.mark, steps, self.reach)
