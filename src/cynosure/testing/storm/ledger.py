"""The diary of a storm: one JSON line per event, in the file before the event counts.

A maintainer must not break: a line is one `write` to a file opened for appending, so a process that is killed
leaves whole lines.
"""

import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

Amounts = tuple[tuple[str, int], ...]
"""What a request adds, per item."""


class Started(Struct, frozen=True, tag="started"):
    """A process opened the store."""

    pid: int
    node: int
    at_s: float


class Sent(Struct, frozen=True, tag="sent"):
    """A request is about to be committed."""

    id: str
    at_s: float
    """Monotonic, which all processes of a machine share."""
    amounts: Amounts


class Done(Struct, frozen=True, tag="done"):
    """A request was acknowledged."""

    id: str
    at_s: float
    commit: int
    sequence: int
    result: int | None
    """Count of the request's last item; `None` when it was found to be committed already."""


class Failed(Struct, frozen=True, tag="failed"):
    """A request was refused, or its outcome is unknown."""

    id: str
    at_s: float
    error: str
    is_unknown: bool


class Seen(Struct, frozen=True, tag="seen"):
    """A reader saw this state."""

    since_s: float
    at_s: float
    sequence: int
    total: int
    """Sum of all counts."""


class Again(Struct, frozen=True, tag="again"):
    """A request with a key is sent once more: what it was told before no longer says what became of it."""

    id: str


Event = Started | Sent | Done | Failed | Again | Seen
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Event)


class Ledger:
    """One process' diary."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, event: Event) -> None:
        """Write an event down. Survives the death of the process from here on."""
        os.write(self._fd, _ENCODER.encode(event) + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def now_s() -> float:
    """The time that events carry."""
    return time.monotonic()


def read_ledger(path: Path) -> list[Event]:
    """All events of one diary, in order; none when its process never came so far."""
    if not path.exists():
        return []
    # Whoever reads while a line is being written may see a part of it.
    whole = path.read_bytes().rpartition(b"\n")[0]
    return list(map(_DECODER.decode, whole.splitlines()))


def read_ledgers(paths: Iterable[Path]) -> list[Event]:
    """The events of several diaries, one diary after the other."""
    return [event for path in paths for event in read_ledger(path)]
