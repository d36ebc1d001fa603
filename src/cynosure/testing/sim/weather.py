"""What one run is like: how many servers, how unlucky the network, how small everything stored.

All of it is drawn from the seed before the run begins. Lifetimes are seconds instead of hours and days,
in the order that `check_lifetimes` asks for.

Must not break: a family of runs that can exercise nothing is worse than none. What a run met is counted
(`report.py`), so a change of these numbers that calms everything shows.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

import msgspec

from cynosure.idempotency.settings import CleanupSettings, IdempotencySettings
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.settings import GcSettings

CLOCK_SLACK_S = 1.0
"""More than sane clocks ever differ by in a run; what rests on wall time is judged with this much slack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Chances per message to the database, and what it takes."""

    delay_s: float
    """Mean of one way."""
    refused: float
    """Not sent: `Unavailable`."""
    request_lost: float
    answer_lost: float
    late: float
    """The caller is told "unknown" soon; the request arrives long after, whatever became of the caller."""
    late_s: float
    patience_s: float = 1.0
    """How long the caller waits for an answer."""


CALM = Faults(delay_s=0.002, refused=0.0, request_lost=0.0, answer_lost=0.0, late=0.0, late_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chaos:
    """Mean seconds between the events of one kind; 0 means never."""

    crash_s: float
    restart_s: float
    pause_s: float
    long_pause: float
    """Chance that a pause outlasts every deadline and lease."""
    longest_pause_s: float = 30.0
    partition_s: float
    outage_s: float
    clock_step_s: float
    collect_s: float
    disconnect: float
    """Chance that a client hangs up while its request runs."""
    deafness: float
    """Chance that a client does not get the answer to a request that ran to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """Requests with an Idempotency-Key, as clients send them through `cynosure.idempotency`."""

    clients: int
    principals: int
    """Clients of one principal use each other's keys."""
    operations: int
    """Per client."""
    repeated: float
    """Share of requests with a key that was used before, in flight, settled or expired."""
    reused: float
    """Share of requests with a used key and something else to do."""
    twins: float
    """Chance that a new request is sent several times at once."""
    slow: float
    """Chance that an execution takes about as long as a lease."""
    revoke_s: float
    """Mean seconds between losses of rights; 0 means never."""
    settings: IdempotencySettings
    kinds: tuple[str, ...] = ()
    """Operations that are asked for; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Everything that is fixed for one run."""

    servers: int
    clients: int
    operations: int
    """Per client."""
    think_s: float
    references: int
    names: int
    """How many different names the clients use: fewer means more conflicts."""
    reads: float
    """Share of reads of a head."""
    past: float
    """Share of operations on earlier states: half of them pin one, half of them restore one."""
    guards: float
    """Share of changes that also rely on the head of another reference."""
    hedging: float
    """Chance that a request with a key is sent to two servers at once."""
    faults: Faults
    chaos: Chaos
    is_shuffled: bool
    swap_carries_rows: bool
    row_bytes: int
    fetch_batch: int
    has_turns: bool
    has_tasks: bool
    """Whether servers run coordinated tasks. Their rows do not fit into the smallest row limit."""
    cache_bytes: int
    staleness_s: float
    has_wild_clock: bool
    """One machine's clock is hours wrong. What rests on wall time is then not asked for."""
    index: IndexLimits
    group_requests: int
    inline_prepare_s: float
    recent_heads: int
    slow_prepare: float
    """Chance that preparing a request takes long."""
    answers_at_once: bool
    """Whether heads are mostly read without a message, as an embedded database allows."""
    deadline_s: float = 4.0
    page_life_s: float = 5.0
    key_lifetime_s: float = 20.0
    lease_s: float = 6.0
    renew_s: float = 2.0
    lease_margin_s: float = CLOCK_SLACK_S
    gc: GcSettings
    keyed: Keyed | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing befalls servers, messages and connections."""
        faults, chaos = self.faults, self.chaos
        return not any(
            (
                *(faults.refused, faults.request_lost, faults.answer_lost, faults.late),
                *(chaos.crash_s, chaos.restart_s, chaos.pause_s, chaos.partition_s, chaos.outage_s),
                *(chaos.clock_step_s, chaos.disconnect),
            )
        )


def draw_keyed_weather(rng: Random) -> Weather:
    """The weather of one seed of the runs with keys.

    Leases are short enough for stops and lost messages to outlast them, lifetimes for keys to be used again
    after them. No stop outlasts a lifetime: whoever sleeps for that long wakes up to keys that nobody knows.
    """
    weather = draw_weather(rng)
    keyed = Keyed(
        clients=rng.choice((2, 3, 5)),
        principals=rng.choice((1, 1, 2)),
        operations=rng.randrange(6, 16),
        repeated=rng.choice((0.1, 0.3)),
        reused=rng.choice((0.05, 0.15)),
        twins=rng.choice((0.1, 0.5)),
        slow=rng.choice((0.0, 0.1, 0.4)),
        revoke_s=rng.choice((0.0, 4.0)),
        settings=IdempotencySettings(
            lifetime=timedelta(seconds=weather.key_lifetime_s - 4),
            buffer=timedelta(seconds=4),
            lease=timedelta(seconds=2),
            wait=timedelta(seconds=6),
            cleanup=CleanupSettings(interval=timedelta(seconds=rng.choice((2, 8)))),
        ),
    )
    if rng.random() < 0.25:
        # All want the same at once, so that most of it is committed together.
        keyed = replace(keyed, kinds=("join", "create", "drop"))
    # What a key's commit wrote is needed for as long as the key is known.
    retention = timedelta(seconds=2 * weather.key_lifetime_s)
    return replace(
        weather,
        servers=rng.choice((1, 2, 3, 3)),
        clients=rng.choice((1, 1, 2)),
        keyed=keyed,
        # Records do not fit into the smallest row limit.
        row_bytes=1 << 20,
        has_tasks=rng.random() < 0.7,
        has_wild_clock=False,
        chaos=replace(weather.chaos, longest_pause_s=9.0),
        gc=msgspec.structs.replace(weather.gc, history_retention=retention),
    )


def draw_weather(rng: Random) -> Weather:
    """The weather of one seed."""
    severity = rng.choice((0.0, 0.2, 0.5, 1.0, 2.5))
    has_wild_clock = rng.random() < 0.1
    faults = Faults(
        delay_s=rng.choice((0.001, 0.005, 0.02, 0.06)),
        refused=0.01 * severity * rng.random(),
        request_lost=0.02 * severity * rng.random(),
        answer_lost=0.05 * severity * rng.random(),
        late=0.04 * severity * rng.random(),
        late_s=rng.choice((0.3, 2.0, 12.0)),
    )
    chaos = Chaos(
        crash_s=rng.choice((0.0, 6.0, 15.0)),
        restart_s=rng.choice((0.0, 6.0)),
        pause_s=rng.choice((0.0, 3.0, 8.0)),
        long_pause=rng.choice((0.0, 0.3)),
        partition_s=rng.choice((0.0, 8.0, 20.0)),
        outage_s=rng.choice((0.0, 0.0, 15.0)),
        clock_step_s=rng.choice((0.0, 5.0)),
        collect_s=rng.choice((3.0, 10.0)),
        disconnect=rng.choice((0.0, 0.05)),
        deafness=rng.choice((0.0, 0.1)),
    )
    row_bytes = rng.choice((512, 1 << 20, 1 << 20))
    return Weather(
        servers=rng.choice((1, 2, 2, 3, 3, 5)),
        clients=rng.choice((2, 4, 6)),
        operations=rng.randrange(8, 26),
        think_s=rng.choice((0.05, 0.5, 2.0, 2.0)),
        references=rng.choice((1, 2)),
        names=rng.choice((3, 8, 30)),
        reads=rng.choice((0.1, 0.1, 0.4)),
        past=rng.choice((0.1, 0.1, 0.3)),
        guards=rng.choice((0.05, 0.3)),
        hedging=rng.choice((0.0, 0.2)),
        faults=faults,
        chaos=chaos,
        is_shuffled=rng.random() < 0.5,
        swap_carries_rows=rng.random() < 0.6,
        row_bytes=row_bytes,
        has_tasks=row_bytes > 512,
        fetch_batch=rng.choice((2, 256)),
        has_turns=rng.random() < 0.4,
        cache_bytes=rng.choice((0, 4_000, 1 << 22)),
        staleness_s=rng.choice((0.0, 0.0, 0.0, 0.0, 0.5)),
        has_wild_clock=has_wild_clock,
        index=IndexLimits(
            buffer_bytes=rng.choice((1, 100, 400)),
            spill_leaves=rng.choice((1, 3)),
            root_bytes=rng.choice((60, 200)),
            leaf_entries=4,
            leaf_bytes=200,
            inner_entries=4,
            inner_bytes=200,
        ),
        group_requests=rng.choice((1, 3, 256)),
        inline_prepare_s=rng.choice((0.0, 0.05)),
        recent_heads=rng.choice((1, 3)),
        slow_prepare=rng.choice((0.0, 0.1)),
        gc=GcSettings(
            grace=timedelta(seconds=8),
            history_retention=timedelta(seconds=20),
            undrop_window=timedelta(seconds=10),
            interval=timedelta(seconds=rng.choice((3, 8))),
            rows_per_second=rng.choice((0, 30, 100)),
        ),
        # Last, so that the seeds from before it was drawn kept their weather.
        answers_at_once=rng.random() < 0.25,
    )
