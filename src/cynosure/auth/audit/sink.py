"""Where events are told to besides our own API, and how far each sink has got.

Must not break: a sink's position moves only after it has taken what lies before, so it may be told something
twice and never misses anything.
"""

from collections.abc import Sequence
from typing import Protocol

from cynosure.auth.audit.events import Event
from cynosure.persistence.ids import named_id
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import ObjId


class Sink(Protocol):
    """Takes events in order. The same ones may come again after a failure or a crash."""

    @property
    def name(self) -> str:
        """Under which its position is stored; renaming one tells it everything again."""
        ...

    @property
    def most_events(self) -> int:
        """How many it takes at once."""
        ...

    async def deliver(self, events: Sequence[Event]) -> None:
        """Take all of these events, of one realm. `Unavailable` when it cannot; they come again later."""
        ...

    async def close(self) -> None:
        """Give up what it holds open."""
        ...


class SinkPosition(Stored, frozen=True):
    """How far a sink has got in one realm."""

    sink: str
    number: int
    """It has taken everything up to this event."""
    updated_us: int


SINK_POSITION = struct_type("audit-sink", SinkPosition, is_mutable=True)


def position_id(sink: str) -> ObjId:
    """Where a sink's position is stored within a realm."""
    return named_id(f"audit-sink/{sink}")
