"""What is measured of remotes.

A maintainer must not break: whoever reaches the server may read this, of any realm or none. So a catalog has
a mark here and not its name, which `GET …/remote` tells to who may load it. And the number of series is
bounded: only the first catalogs of a process have series of their own, all others share one.
"""

from typing import Final, Literal

from cynosure.common.telemetry.metrics import Counter, Gauge, Histogram

Seen = Literal["fresh", "unchanged", "changed", "stale", "negative"]
"""What became of a wish to see something of a remote: known well enough, asked and the same, asked and
another, too old but shown as the remote is down, known to be missing."""

REQUESTS: Final = Counter(
    "federation",
    "requests",
    "Requests to remote catalogs, by what became of them.",
    labels=("catalog", "operation", "outcome"),
)
SECONDS: Final = Histogram(
    "federation", "request_seconds", "Time that remote catalogs took to answer.", labels=("catalog",)
)
RETRIES: Final = Counter("federation", "retries", "Requests that were sent again.", labels=("catalog",))
BREAKER: Final = Gauge(
    "federation",
    "breaker_open",
    "Whether a remote catalog is left alone: 0 no, 1 it is tried, 2 yes; the worst of all workers.",
    labels=("catalog",),
    combine="max",
)
QUEUED: Final = Gauge(
    "federation", "queued", "Requests that wait for their turn at a remote catalog.", labels=("catalog",)
)
SEEN: Final = Counter(
    "federation", "seen", "Loads of what a remote catalog has, by how it was known.", labels=("outcome",)
)
LEFT_OUT: Final = Counter(
    "federation", "names_left_out", "Names of remotes that cannot be names here, left out of lists."
)
CLIENTS: Final = Gauge("federation", "clients", "Clients of remote catalogs that are kept.")

_MOST_NAMES: Final = 32
_OTHER: Final = "(other)"
"""Not a mark that a catalog can have."""
_names: set[str] = set()


def label_of(mark: str) -> str:
    """What the numbers of the catalog with this mark are under (`federation.circles.mark_of`)."""
    if mark in _names:
        return mark
    if not mark or len(_names) >= _MOST_NAMES:
        return _OTHER
    _names.add(mark)
    return mark


def note_seen(outcome: Seen) -> None:
    """Count how something of a remote was known."""
    SEEN.inc(outcome=outcome)
