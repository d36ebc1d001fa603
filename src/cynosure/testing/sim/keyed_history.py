"""What is recorded of requests with an Idempotency-Key: what clients were told, and how records changed.

Must not break: records are judged as the database sees them change, in true time, so nothing here depends on
what a server believes.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cynosure.idempotency.record import RECORD, Answer, Record
from cynosure.persistence.objects import unseal
from cynosure.persistence.spi import ObjKey, RefKey, Row
from cynosure.testing.sim.clock import START_US
from cynosure.testing.sim.history import History
from cynosure.testing.sim.operations import Operation
from cynosure.testing.sim.weather import CLOCK_SLACK_S

_US: Final = 1_000_000


@dataclass(slots=True, kw_only=True)
class KeyedAttempt:
    """One request with a key, as a client sent it to one server."""

    request_id: str
    principal: str
    operation: Operation
    reference: RefKey
    key: str
    key_hash: str
    payload_hash: str
    server: str
    invoked: int
    invoked_s: float
    ended: int = 1 << 62
    ended_s: float = float("inf")
    outcome: str = "pending"
    """`answered`, `conflict`, `in progress`, `forbidden`, `unknown`. Only the first is final."""
    answer: Answer | None = None
    error: str = ""
    """Type of the error, when this very attempt was refused and not told what another one was."""


class Epoch(NamedTuple):
    """A key is new, or as good as."""

    begins_s: float
    """When its record was there."""
    created_s: float
    """From when its life is counted, by the clock of its server. The record may have come much later."""


@dataclass(slots=True)
class Revoked:
    """A span in which a principal had no rights."""

    principal: str
    since: int
    until: int = 1 << 62


@dataclass(slots=True)
class KeyedHistory:
    """All requests with keys of one run."""

    history: History
    is_quiet: bool
    attempts: list[KeyedAttempt] = field(default_factory=list)
    epochs: dict[str, list[Epoch]] = field(default_factory=dict)
    """Hash of a key to the times at which it was new, or as good as."""
    revoked: list[Revoked] = field(default_factory=list)

    def see_row(self, key: ObjKey, before: Row | None, after: Row | None) -> None:
        """A row of the database is about to be replaced, or removed."""
        if key.type != RECORD.name:
            return
        old = None if before is None else unseal(RECORD, key, before.blob)[0]
        if after is not None:
            self._see_record(old, unseal(RECORD, key, after.blob)[0])
        elif old is not None and old.state == "IN_PROGRESS":
            # Given up by who had it: nothing was decided, so the key is as new as it was. A record whose
            # removal was undone is removed twice.
            if begun := self.epochs.get(old.key_hash):
                begun.pop()
            self.history.note("record", old.key_hash[:8], "forgotten")
            self.history.count("keys forgotten")

    def _see_record(self, old: Record | None, new: Record) -> None:
        history = self.history
        history.note("record", new.key_hash[:8], new.state, f"attempt={new.attempt}", new.holder)
        if old is None or old.created_us != new.created_us:
            epoch = Epoch(history.now_s, (new.created_us - START_US) / _US)
            self.epochs.setdefault(new.key_hash, []).append(epoch)
            history.count("keys begun again" if old is not None else "keys begun")
            return
        if new.attempt == old.attempt:
            history.count("leases renewed", int(new.state == old.state and new.lease_until_us > 0))
            return
        left_s = (old.lease_until_us - START_US) / _US - history.now_s
        if left_s > CLOCK_SLACK_S:
            history.breach("a lease that runs is respected", f"{new.key_hash[:8]}: {left_s:.3f} s left")
        if old.lease_until_us:
            history.count("keys taken over")
            if self.is_quiet:
                text = f"{new.key_hash[:8]} of {old.holder} by {new.holder}"
                history.breach("nobody is given up for dead without a fault", text)
        else:
            history.count("keys tried again")

    def may(self, principal: str) -> bool:
        """Whether the principal has its rights now."""
        return not any(each.principal == principal and each.until == 1 << 62 for each in self.revoked)

    def was_without_rights(self, principal: str, first: int, last: int) -> bool:
        """Whether it had none from the one event to the other."""
        return any(
            each.principal == principal and each.since < first and each.until > last for each in self.revoked
        )
