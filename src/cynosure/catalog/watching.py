"""Whether a process still lets its callers wait for something to happen."""


class Watching:
    """Asked by whoever waits, from time to time."""

    __slots__ = ("is_ending",)

    def __init__(self) -> None:
        self.is_ending = False

    def stop(self) -> None:
        """From now on nobody waits: the process is about to end, and must not be held up."""
        self.is_ending = True
