"""What a client asks for when it wants to reach a table's files itself."""

from typing import Final, NamedTuple


class Delegation(NamedTuple):
    """The ways of access that a client can use. Neither: it did not ask."""

    vended: bool = False
    """Credentials of its own."""
    signing: bool = False
    """Requests that the server signs."""

    def __bool__(self) -> bool:
        return self.vended or self.signing


NOT_ASKED: Final = Delegation()
ANY_WAY: Final = Delegation(vended=True, signing=True)
