"""The judge of a storm finds what it is there to find."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from cynosure.persistence.commit import COMMIT
from cynosure.persistence.lifecycle import Persistence
from cynosure.testing.storm.ledger import Done, Event, Failed, Ledger, Seen, Sent, now_s, read_ledger
from cynosure.testing.storm.verify import Verdict, verify_storm
from cynosure.testing.storm.writers import MAIN, Storm, open_storm, read_counts, write_some

pytestmark = pytest.mark.anyio


class Aftermath:
    """A store after a small storm, and its ledger."""

    def __init__(self, persistence: Persistence, events: list[Event]) -> None:
        self.persistence = persistence
        self.events = events

    async def judge(self, events: list[Event] | None = None) -> Verdict:
        return await verify_storm(self.persistence, self.events if events is None else events)


@pytest.fixture
async def aftermath(tmp_path: Path) -> AsyncIterator[Aftermath]:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    async with open_storm("memory:") as persistence:
        await write_some(persistence, ledger, Storm("s"), Random(1), 10)
        since_s = now_s()
        state = (await persistence.committer(MAIN).read()).state
        total = sum((await read_counts(state)).values())
        ledger.note(Seen(since_s, now_s(), state.commit.record.sequence, total))
        ledger.close()
        yield Aftermath(persistence, read_ledger(path))


def change(events: list[Event], kind: type, alter: Callable[[Event], Event]) -> list[Event]:
    """The events with the fifth (or the only) one of a kind altered."""
    at = [number for number, event in enumerate(events) if isinstance(event, kind)][:5][-1]
    return [*events[:at], alter(events[at]), *events[at + 1 :]]


async def test_an_honest_storm_has_no_problems(aftermath: Aftermath) -> None:
    verdict = await aftermath.judge()

    assert verdict.problems == ()
    assert (verdict.sent, verdict.acknowledged, verdict.committed, verdict.seen) == (10, 10, 10, 1)


LIES: dict[str, tuple[type, Callable[[Event], Event], str]] = {
    "acknowledged and lost": (Done, lambda event: replace(event, id="never"), "is lost"),
    "another commit": (Done, lambda event: replace(event, commit=1), "another commit"),
    "another result": (Done, lambda event: replace(event, result=-1), "was told -1"),
    "another amount": (Sent, lambda event: replace(event, amounts=(("item-0", 1000),)), "counts are not"),
    "refused and applied": (
        Done,
        lambda event: Failed(event.id, event.at_s, "Unavailable", is_unknown=False),
        "was refused (Unavailable) and is in the chain",
    ),
    "a sum that never was": (Seen, lambda event: replace(event, total=event.total + 1), "a reader saw"),
    "a read of the past": (Seen, lambda event: replace(event, sequence=1), "had been seen before"),
    "out of order": (Sent, lambda event: replace(event, at_s=event.at_s + 1000), "had been seen before"),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_ledger_that_says_otherwise_is_found(aftermath: Aftermath, lie: str) -> None:
    kind, alter, finding = LIES[lie]
    events = change(aftermath.events, kind, alter)
    if lie == "acknowledged and lost":
        events.append(Sent("never", 0.0, (("item-0", 1),)))

    verdict = await aftermath.judge(events)

    assert any(finding in problem for problem in verdict.problems), verdict.problems


async def test_a_request_that_nobody_sent_is_found(aftermath: Aftermath) -> None:
    kept = [
        event for event in aftermath.events if not (isinstance(event, Sent | Done) and event.id[-2:] == ".4")
    ]

    verdict = await aftermath.judge(kept)

    assert any("nobody sent it" in problem for problem in verdict.problems)


async def test_an_unknown_outcome_may_be_in_the_chain_or_not(aftermath: Aftermath) -> None:
    events = change(
        aftermath.events, Done, lambda event: Failed(event.id, event.at_s, "OutcomeUnknown", True)
    )
    events += [Sent("x", 0.0, (("item-0", 1),)), Failed("x", 1.0, "OutcomeUnknown", True)]

    verdict = await aftermath.judge(events)

    assert verdict.problems == ()
    assert (verdict.unknown, verdict.acknowledged, verdict.committed) == (2, 9, 10)


async def test_a_commit_that_is_gone_is_found(aftermath: Aftermath) -> None:
    persistence = aftermath.persistence
    committer = persistence.committer(MAIN)
    head = (await committer.read()).state.commit_id
    await persistence.backend.delete([committer.store.key(COMMIT, head)])

    verdict = await aftermath.judge()

    assert any(str(head) in problem for problem in verdict.problems)


async def test_a_ledger_survives_its_writer_and_is_only_ever_added_to(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for number in range(2):
        ledger = Ledger(path)
        ledger.note(Sent(f"r{number}", 1.5, (("item-0", 2), ("item-1", 3))))
        ledger.close()

    assert read_ledger(path) == [Sent(f"r{number}", 1.5, (("item-0", 2), ("item-1", 3))) for number in (0, 1)]
    assert read_ledger(tmp_path / "none") == []
