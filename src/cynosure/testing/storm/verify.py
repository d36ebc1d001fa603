"""The ledgers of a storm against the chain of commits.

The chain is replayed from its beginning, request by request. Whatever a ledger says must follow from it:
an acknowledged request is in the chain once, where and with the result it was told; a refused one is not;
one whose outcome is unknown, or that was in flight when its process was killed, may be. A reader saw the
sum at its commit. And what ended before something else began comes before it in the chain.
"""

from collections.abc import Iterable

from msgspec import Struct

from cynosure.persistence.commit.records import RequestRecord
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.history.log import walk_log
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import ObjId
from cynosure.testing.storm.ledger import Again, Done, Event, Failed, Seen, Sent
from cynosure.testing.storm.writers import MAIN, read_counts


class Verdict(Struct, frozen=True):
    """What a storm came to."""

    problems: tuple[str, ...]
    sent: int
    acknowledged: int
    unknown: int
    refused: int
    committed: int
    """Requests in the chain; those that were not acknowledged were unknown or in flight."""
    commits: int
    seen: int


class _Applied(Struct, frozen=True):
    commit: ObjId
    sequence: int
    result: int


class _Span(Struct, frozen=True):
    since_s: float
    at_s: float
    sequence: int
    what: str
    is_write: bool


async def verify_storm(persistence: Persistence, events: Iterable[Event]) -> Verdict:
    """Replay the chain and compare."""
    events = list(events)
    problems: list[str] = []
    committer = persistence.committer(MAIN)
    base = await committer.read()
    chain = [entry async for entry in walk_log(committer.store, base.state.commit_id)]
    chain.reverse()
    if [entry.record.sequence for entry in chain] != list(range(1, len(chain) + 1)):
        problems.append("the chain has gaps")

    sent = {event.id: event for event in events if isinstance(event, Sent)}
    applied: dict[str, _Applied] = {}
    counts: dict[str, int] = {}
    totals = {0: 0}
    for entry in chain:
        for request in entry.record.requests:
            result = _replay(request, sent, counts, problems)
            if request.request_id in applied:
                problems.append(f"{request.request_id} is in the chain twice")
            applied[request.request_id] = _Applied(entry.id, entry.record.sequence, result)
        totals[entry.record.sequence] = sum(counts.values())

    if counts != await read_counts(base.state):
        problems.append("the counts are not what the chain adds up to")
    problems += _judge(events, applied, totals)
    problems += _judge_order(events, sent)
    problems += (await check_reference(committer.store, base.ref)).problems
    failed = [event for event in events if isinstance(event, Failed)]
    return Verdict(
        problems=tuple(problems),
        sent=len(sent),
        acknowledged=sum(isinstance(event, Done) for event in events),
        unknown=sum(event.is_unknown for event in failed),
        refused=sum(not event.is_unknown for event in failed),
        committed=len(applied),
        commits=len(chain),
        seen=sum(isinstance(event, Seen) for event in events),
    )


def _replay(
    request: RequestRecord, sent: dict[str, Sent], counts: dict[str, int], problems: list[str]
) -> int:
    found = sent.get(request.request_id)
    if found is None:
        problems.append(f"{request.request_id} is in the chain and nobody sent it")
        return 0
    for name, amount in found.amounts:
        counts[name] = counts.get(name, 0) + amount
    return counts[found.amounts[-1][0]]


def _judge(events: list[Event], applied: dict[str, _Applied], totals: dict[int, int]) -> list[str]:
    problems: list[str] = []
    finished = {event.id for event in events if isinstance(event, Done)}
    unknown = {event.id for event in events if isinstance(event, Failed) and event.is_unknown}
    # Sent once more, and then the storm ended: whoever was refused before may be in the chain by now.
    last = {event.id: event for event in events if isinstance(event, Failed | Again)}
    unknown |= {event.id for event in last.values() if isinstance(event, Again)}
    for event in events:
        match event:
            case Done():
                found = applied.get(event.id)
                if found is None:
                    problems.append(f"{event.id} was acknowledged and is lost")
                elif (event.commit, event.sequence) != (found.commit, found.sequence):
                    problems.append(f"{event.id} was told another commit than the one it is in")
                elif event.result not in (None, found.result):
                    problems.append(f"{event.id} was told {event.result}, it made {found.result}")
            case Failed():
                # With an idempotency key a request is repeated, so only its last answer counts.
                if event.id in applied and event.id not in finished | unknown:
                    problems.append(f"{event.id} was refused ({event.error}) and is in the chain")
            case Seen() if totals.get(event.sequence) != event.total:
                problems.append(
                    f"a reader saw {event.total} at {event.sequence}, not {totals.get(event.sequence)}"
                )
    return problems


def _judge_order(events: list[Event], sent: dict[str, Sent]) -> list[str]:
    """Whether something that had ended before something else began comes later in the chain."""
    spans: list[_Span] = []
    for event in events:
        if isinstance(event, Done) and event.result is not None:
            spans.append(_Span(sent[event.id].at_s, event.at_s, event.sequence, event.id, True))
        elif isinstance(event, Seen):
            spans.append(_Span(event.since_s, event.at_s, event.sequence, "a reader", False))
    by_end = sorted(spans, key=lambda span: span.at_s)
    problems: list[str] = []
    ended, latest = 0, 0
    for span in sorted(spans, key=lambda span: span.since_s):
        while ended < len(by_end) and by_end[ended].at_s < span.since_s:
            latest = max(latest, by_end[ended].sequence)
            ended += 1
        # A write that began after another one ended cannot even share its commit.
        if span.sequence < latest or (span.is_write and span.sequence == latest):
            problems.append(f"{span.what} is at {span.sequence}, although {latest} had been seen before")
    return problems
