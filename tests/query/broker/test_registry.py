from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cynosure.query.broker.registry import FORGOTTEN_AFTER_S, MAX_WORKERS, WorkerRegistry
from cynosure.query.settings import BrokerSettings

SETTINGS = BrokerSettings()
PATIENCE_S = 15.0
NAMES = st.sampled_from(["h/0", "h/1", "h/2"])


class StillClock:
    def __init__(self) -> None:
        self.s = 1_000.0

    def now_us(self) -> int:
        return round(self.s * 1_000_000)

    def monotonic_s(self) -> float:
        return self.s

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a registry answers from memory")


class AgainstHistory(RuleBasedStateMachine):
    """The model keeps everything that happened, and looks through all of it for every answer."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = StillClock()
        self.registry = WorkerRegistry(SETTINGS, self.clock)
        self.history: list[tuple[float, str, str]] = []
        self.active: dict[str, int] = {}

    def note(self, what: str, name: str) -> None:
        self.history.append((self.clock.s, what, name))

    @rule(seconds=st.sampled_from([0.1, 4.9, 5.0, 14.9, 15.0, 120.0]))
    def wait(self, seconds: float) -> None:
        self.clock.s += seconds

    @rule(name=NAMES)
    def begin(self, name: str) -> None:
        self.registry.begin(name)
        self.active[name] = self.active.get(name, 0) + 1
        self.note("beat", name)

    @rule(name=NAMES)
    def end(self, name: str) -> None:
        if self.active.get(name):
            self.registry.end(name)
            self.active[name] -= 1

    @rule(name=NAMES)
    def beat(self, name: str) -> None:
        self.registry.beat(name)
        self.note("beat", name)

    @rule(name=NAMES)
    def fail(self, name: str) -> None:
        self.registry.mark_unhealthy(name)
        self.note("fail", name)

    @rule(names=st.sets(NAMES))
    def observe(self, names: set[str]) -> None:
        self.registry.observe([(name, 2) for name in sorted(names)])
        for name in names:
            if not self.active.get(name):
                self.note("beat", name)
        for name in {"h/0", "h/1", "h/2"} - names:
            if not self.active.get(name):
                self.note("forget", name)

    @invariant()
    def agrees(self) -> None:
        expected = {}
        for name in ("h/0", "h/1", "h/2"):
            mine = [(at, what) for at, what, whose in self.history if whose == name]
            forgotten = max((i for i, (_, what) in enumerate(mine) if what == "forget"), default=-1)
            mine = mine[forgotten + 1 :]
            if not mine:
                continue
            at, what = mine[-1]
            heard = max((at for at, what in mine if what == "beat"), default=mine[0][0])
            if not self.active.get(name) and self.clock.s - heard > FORGOTTEN_AFTER_S:
                self.note("forget", name)
                continue
            expected[name] = (what == "beat" and self.clock.s - at < PATIENCE_S, self.active.get(name, 0))
        assert {
            each.name: (each.is_healthy, each.active_fragments) for each in self.registry.workers()
        } == expected


TestAgainstHistory = AgainstHistory.TestCase
TestAgainstHistory.settings = settings(max_examples=60, stateful_step_count=30)


def test_three_missed_beats_are_unhealthy_and_one_recovers():
    clock = StillClock()
    registry = WorkerRegistry(BrokerSettings(heartbeat=timedelta(seconds=5), missed_heartbeats=3), clock)
    registry.begin("h/1")
    clock.s += 14.9
    assert registry.workers()[0].is_healthy
    clock.s += 0.1
    assert not registry.workers()[0].is_healthy
    # The driver saying that the executor is there is no beat of a scan that does not beat.
    registry.observe([("h/1", 4)])
    assert not registry.workers()[0].is_healthy
    registry.beat("h/1")
    assert registry.workers()[0].is_healthy
    assert registry.workers()[0].cores == 4


def test_an_idle_executor_is_healthy_because_the_driver_says_so():
    clock = StillClock()
    registry = WorkerRegistry(SETTINGS, clock)
    registry.observe([("10.0.0.1/1", 4), ("10.0.0.2/2", 4)])
    assert [each.is_healthy for each in registry.workers()] == [True, True]
    clock.s += 60
    assert [each.is_healthy for each in registry.workers()] == [False, False]
    registry.observe([("10.0.0.1/1", 4)])
    assert [each.name for each in registry.workers()] == ["10.0.0.1/1"]


def test_the_driver_and_a_scan_may_name_the_host_differently():
    registry = WorkerRegistry(SETTINGS, StillClock())
    registry.begin("worker-7.internal/3")
    registry.observe([("10.0.0.1/3", 8)])
    [worker] = registry.workers()
    assert (worker.name, worker.cores, worker.active_fragments) == ("10.0.0.1/3", 8, 1)


def test_who_has_no_scan_need_not_beat_as_often_as_scans_do():
    clock = StillClock()
    registry = WorkerRegistry(BrokerSettings(heartbeat=timedelta(seconds=1)), clock)
    registry.observe([("h/idle", 1)])
    registry.begin("h/busy")
    clock.s += 5
    assert {each.name: each.is_healthy for each in registry.workers()} == {"h/idle": True, "h/busy": False}
    clock.s += 10
    assert not any(each.is_healthy for each in registry.workers())


def test_made_up_names_do_not_fill_the_memory():
    registry = WorkerRegistry(SETTINGS, StillClock())
    registry.begin("h/kept")
    for number in range(MAX_WORKERS + 50):
        registry.beat(f"h/{number}")
    workers = registry.workers()
    assert len(workers) == MAX_WORKERS
    assert "h/kept" in {each.name for each in workers}
