"""A request on its way through the commit loop, and the group it travels in.

Must not break: a future is answered once; whoever answers second is ignored, not an error.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from cynosure.common.errors import Contended, CynosureError, OutcomeUnknown
from cynosure.common.retry import Backoff
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Prepared, Request
from cynosure.persistence.commit.view import Draft, Reads, State
from cynosure.persistence.spi import ObjId, Reference, RefKey
from cynosure.persistence.store import Encoded


@dataclass(slots=True)
class Counters:
    """What the committers of one `Persistence` have seen, for status and tests (`metrics.py` counts too)."""

    commits: int = 0
    requests: int = 0
    lost: int = 0
    unknown: int = 0
    prepared_again: int = 0
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Base:
    """A reference as read, and the state at its head."""

    ref: Reference
    state: State

    def is_newer_than(self, other: "Base") -> bool:
        """Generation first: a disaster reset moves to an older sequence under a newer generation."""
        return (self.ref.generation, self.state.commit.record.sequence) > (
            other.ref.generation,
            other.state.commit.record.sequence,
        )


@dataclass(slots=True, eq=False)
class Entry:
    """A request on its way."""

    request: Request[Any]
    backoff: Backoff
    future: asyncio.Future[Committed[Any] | AlreadyCommitted]
    base: Base
    prepared: Prepared[Any] | None = None
    reads: Reads = field(default_factory=lambda: Reads(points={}, ranges=[]))
    objects: list[Encoded] = field(default_factory=list)
    prepared_on: ObjId | None = None
    """The commit it was prepared on; `None` when that was a draft."""
    has_read_head: bool = False
    """Its base, or a later one, was read from the database for it; else it was assumed to be the head."""
    is_abandoned: bool = False
    """The caller was cancelled: nobody listens any more."""
    attempts: int = 0

    @property
    def is_change(self) -> bool:
        """Whether what was prepared goes into a commit."""
        prepared = self.prepared
        return prepared is not None and (self.request.is_recorded or any(prepared.changes.values()))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that go into the commit with what was prepared."""
        joined = () if self.prepared is None else self.prepared.joined
        return (self.request.key_hash, *(each.key_hash for each in joined))

    @property
    def size_bytes(self) -> int:
        """What it adds to a commit, but for index entries."""
        receipts = 0 if self.prepared is None else self.prepared.receipts_bytes
        return sum(each.payload_bytes for each in self.objects) + receipts

    def answer(self, outcome: Committed[Any] | AlreadyCommitted) -> None:
        """Tell the caller what came of it."""
        if not self.future.done():
            self.future.set_result(outcome)

    def refuse(self, error: BaseException) -> None:
        """Tell the caller what is in the way."""
        if not self.future.done():
            self.future.set_exception(error)
            if self.is_abandoned:
                self.future.exception()  # Not worth a warning.

    def contended(self, key: RefKey) -> Contended:
        """The refusal for a deadline that passed."""
        return Contended(
            "Other writers kept this change from being committed until its deadline",
            fix="Try again; if it keeps happening, send fewer concurrent writers to one catalog.",
            reference=key.name,
            attempts=self.attempts,
            waited_s=round(self.backoff.waited_s, 3),
        )


@dataclass(slots=True)
class Group:
    """What one turn will commit, and what it will say to those it does not."""

    draft: Draft
    accepted: list[Entry] = field(default_factory=list)
    refused: list[tuple[Entry, CynosureError]] = field(default_factory=list)
    unchanged: list[Entry] = field(default_factory=list)
    repeated: list[tuple[Entry, str]] = field(default_factory=list)
    """A request with a key that another request of this group has, and that key."""

    def entries(self) -> list[Entry]:
        """Everyone who waits for this group."""
        return [
            *self.accepted,
            *(entry for entry, _ in self.refused),
            *self.unchanged,
            *(entry for entry, _ in self.repeated),
        ]

    def accept(self, entry: Entry) -> None:
        """Put a prepared request into the draft, or beside it when it changes nothing."""
        assert entry.prepared is not None  # noqa: S101 - only prepared entries are accepted
        if entry.is_change:
            self.draft.add(entry.prepared.changes, entry.prepared.objects)
            self.accepted.append(entry)
        else:
            self.unchanged.append(entry)


def broken_off(key: RefKey, defect: Exception) -> OutcomeUnknown:
    """What a defect of ours leaves whoever waits with."""
    unknown = OutcomeUnknown(
        "A defect interrupted this commit",
        fix="Read the state again before you repeat the request, and report the log.",
        reference=key.name,
    )
    unknown.__cause__ = defect
    return unknown
