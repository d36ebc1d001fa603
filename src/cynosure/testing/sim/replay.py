"""The chain of a finished run, read from the recorded moves and replayed on the model.

Must not break: every recorded commit is replayed, also those that garbage collection has deleted since.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cynosure.auth.receipts import unpack_receipt
from cynosure.persistence.commit.records import (
    COMMIT,
    NO_COMMIT,
    PARENTS_KEPT,
    CommitRecord,
    RequestRecord,
)
from cynosure.persistence.objects import unseal
from cynosure.persistence.spi import ObjId
from cynosure.testing.sim.history import BrokenRule, Move
from cynosure.testing.sim.model import ModelState, Refused
from cynosure.testing.sim.operations import Operation


@dataclass(slots=True)
class Landed:
    """A request as it is in the chain."""

    at: int
    at_s: float
    commit_id: ObjId
    sequence: int
    result: Any
    number: int
    """Which preparation of the request was committed."""
    is_refusal: bool = False
    """Under an Idempotency-Key, so that nothing else can be."""


@dataclass(slots=True)
class Chain:
    """All that one reference ever led to."""

    moves: list[Move]
    requests: dict[str, Landed] = field(default_factory=dict)
    keys: dict[str, list[tuple[str, Landed]]] = field(default_factory=dict)
    """Hash of a key to the requests that were committed under it, in order."""
    states: list[ModelState] = field(default_factory=lambda: [ModelState()])
    """After each request, also inside one commit; the first is the empty one."""
    state_at: list[int] = field(default_factory=lambda: [0])
    """Event at which each of `states` became current."""
    by_commit: dict[ObjId, ModelState] = field(default_factory=lambda: {NO_COMMIT: ModelState()})
    replaced_s: dict[ObjId, float] = field(default_factory=dict)
    """Commit to the time at which the next one took its place."""

    def states_between(self, first: int, last: int) -> Iterator[ModelState]:
        """States that were current at some instant between two events, the newest first."""
        newest = bisect_right(self.state_at, last) - 1
        oldest = bisect_right(self.state_at, first) - 1
        # The last state of a commit is what it leaves behind; those before it existed only inside.
        yield from reversed(self.states[max(0, oldest) : newest + 1])

    def was_current(self, head: ObjId, first: int, last: int) -> bool:
        """Whether the reference led to `head` at some instant between two events."""
        for number, move in enumerate(self.moves):
            ends = self.moves[number + 1].at if number + 1 < len(self.moves) else None
            if move.after.head == head and move.at <= last and (ends is None or ends > first):
                return True
        return False

    def event_before(self, at_s: float) -> int:
        """The last move before a time, for reads that may be stale."""
        earlier = [move.at for move in self.moves if move.at_s < at_s]
        return earlier[-1] if earlier else 0


def replay(moves: list[Move]) -> Chain:
    """Check the shape of a chain and apply all of its requests to the model."""
    chain = Chain(moves)
    parents: list[ObjId] = []
    last: CommitRecord | None = None
    for move in moves:
        before, after = move.before, move.after
        if before is None:
            continue
        if before.head == after.head:
            if after.generation != before.generation + 1:
                raise BrokenRule("moves are commits or generations", f"{before} -> {after}")
            continue
        if after.generation != before.generation:
            raise BrokenRule("moves are commits or generations", f"{before} -> {after}")
        if move.commit is None:
            raise BrokenRule("rows come before the reference", f"head {after.head} has no row")
        record = unseal(COMMIT, move.commit.key, move.commit.blob)[0].record
        _check_shape(after.head, record, last, parents)
        chain.replaced_s[before.head] = move.at_s
        for request in record.requests:
            _replay_request(chain, move, record, request)
        chain.by_commit[after.head] = chain.states[-1]
        parents = [after.head, *parents][:PARENTS_KEPT]
        last = record
    return chain


def _check_shape(
    commit_id: ObjId, record: CommitRecord, last: CommitRecord | None, parents: list[ObjId]
) -> None:
    if list(record.parents) != parents:
        raise BrokenRule("a chain has one order", f"{commit_id} has parents {record.parents}, not {parents}")
    if record.sequence != (last.sequence if last else 0) + 1:
        raise BrokenRule("sequence numbers are contiguous", f"{commit_id} has {record.sequence}")
    if last is not None and record.time_us <= last.time_us:
        raise BrokenRule("commit times grow", f"{commit_id} at {record.time_us} after {last.time_us}")
    if not record.requests:
        raise BrokenRule("a commit has a request", f"{commit_id}")


def _replay_request(chain: Chain, move: Move, record: CommitRecord, request: RequestRecord) -> None:
    details = [msgspec.msgpack.decode(change.detail) for change in request.changes]
    state = chain.states[-1]
    number, result = 0, None
    is_refusal = bool(request.receipt) and unpack_receipt(request.receipt).kind == "refusal"
    if is_refusal:
        if request.changes:
            raise BrokenRule("a refusal changes nothing", f"{request.request_id} in {move.after.head}")
    elif request.operation == "restore":
        target = ObjId(details[0]["to"])
        if target not in chain.by_commit:
            raise BrokenRule("a restore goes back in the same chain", f"{request.request_id} to {target}")
        state, result = chain.by_commit[target], details[0]["entries"]
    else:
        detail = details[0]
        operation = Operation(detail["op"], tuple(detail["args"]))
        number = detail["number"]
        try:
            state, result = state.apply(operation, detail["result"])
        except Refused as refusal:
            text = f"{request.request_id} {operation} in {move.after.head}: {refusal}"
            raise BrokenRule("a commit holds what the state allows", text) from None
        if result != detail["result"]:
            text = f"{request.request_id} {operation} in {move.after.head}: {detail['result']}, not {result}"
            raise BrokenRule("results are those of the order in the chain", text)
    if request.request_id in chain.requests:
        raise BrokenRule("a request is committed once", f"{request.request_id} again in {move.after.head}")
    landed = Landed(move.at, move.at_s, move.after.head, record.sequence, result, number, is_refusal)
    if request.key_hash:
        chain.keys.setdefault(request.key_hash, []).append((request.request_id, landed))
    chain.requests[request.request_id] = landed
    chain.states.append(state)
    chain.state_at.append(move.at)
