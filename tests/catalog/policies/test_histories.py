"""Long random histories of policies and tables, against a model that knows nothing of indexes (I46)."""

import random
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.catalog.consistency import find_disagreements
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.policies.attached import load_attached
from cynosure.catalog.policies.mappings import MAPPINGS
from cynosure.catalog.policies.placing import AttachTo
from cynosure.common.errors import CynosureError
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.settings import GcSettings, PersistenceSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.policies.made import COMPACTION, EXPIRY, attach, create, policy
from tests.catalog.tables import make

pytestmark = pytest.mark.anyio

SPACES = (("ns",), ("other",))
TABLES = tuple(Identifier(space, name) for space in SPACES for name in ("a", "b"))
POLICIES = {"p": COMPACTION, "q": COMPACTION, "r": EXPIRY}
ACTS = ("make", "create", "attach", "attach", "detach", "drop", "rename", "restore", "wait", "end")
WINDOW = timedelta(minutes=7)
"""Short, because all that sleeps on the clock wakes in between."""
SETTINGS = PersistenceSettings(gc=GcSettings(undrop_window=WINDOW))


class Model:
    """What must be attached to what. Tables are numbers, as long as they can be restored."""

    def __init__(self) -> None:
        self.tables: dict[Identifier, int] = {}
        self.dropped: list[tuple[int, Identifier, float]] = []
        """With when that was."""
        self.policies: dict[str, None] = {}
        """In the order in which they were made."""
        self.attached: set[tuple[str, object]] = set()
        self.made = 0
        self.now_s = 0.0

    def thing(self, to: AttachTo) -> object:
        if to.type != "table-like":
            return to.path
        return self.tables.get(Identifier(to.path[:-1], to.path[-1]))

    def can_attach(self, name: str, thing: object) -> bool:
        others = {other for other, on in self.attached if on == thing and other != name}
        return all(POLICIES[other] != POLICIES[name] for other in others)

    def forget(self, waited_s: float) -> None:
        """Time passes, and what was dropped longer ago than the window is gone for good."""
        self.now_s += waited_s
        gone = {number for number, _, at_s in self.dropped if self.now_s - at_s > WINDOW.total_seconds()}
        self.dropped = [each for each in self.dropped if each[0] not in gone]
        self.attached = {(name, thing) for name, thing in self.attached if thing not in gone}

    def expected(self, table: Identifier) -> list[str]:
        way = [(), table.namespace, self.tables[table]]
        return [name for on in way for name in self.policies if (name, on) in self.attached]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def catalog(tmp_path: Path, clock: ManualClock) -> AsyncIterator[OpenCatalog]:
    async with open_directory_in(tmp_path, clock=clock, settings=SETTINGS) as directory:
        opened = await make_catalog(directory, tmp_path)
        for space in SPACES:
            await create_namespace(opened, ROOT, space, {})
        yield opened


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_attached_is_what_a_model_says(
    catalog: OpenCatalog, clock: ManualClock, seed: int
) -> None:
    rng, model = random.Random(seed), Model()

    for _ in range(120):
        await step(rng, catalog, clock, model)
        await agree(catalog, model)

    report = await check_reference(catalog.store, (await catalog.committer.read()).ref)
    assert not report.problems
    assert await find_disagreements(await catalog.read()) == []


async def step(rng: random.Random, catalog: OpenCatalog, clock: ManualClock, model: Model) -> None:
    name, table = rng.choice(sorted(POLICIES)), rng.choice(TABLES)
    to = rng.choice(
        [
            AttachTo("catalog"),
            AttachTo("namespace", table.namespace),
            AttachTo("table-like", (*table.namespace, table.name)),
            AttachTo("table-like", (*table.namespace, table.name)),
        ]
    )
    thing = model.thing(to)
    match rng.choice(ACTS):
        case "make":
            if await done(make(catalog, table)):
                assert table not in model.tables
                model.made += 1
                model.tables[table] = model.made
        case "create":
            assert await done(create(catalog, name, policy_type=POLICIES[name])) == (
                name not in model.policies
            )
            model.policies.setdefault(name)
        case "attach":
            can = name in model.policies and thing is not None and model.can_attach(name, thing)
            assert await done(attach(catalog, name, to)) == can
            if can:
                model.attached.add((name, thing))
        case "detach":
            is_attached = (name, thing) in model.attached
            assert await done(detach_policy(catalog, ROOT, policy(name), to)) == is_attached
            model.attached.discard((name, thing))
        case "drop":
            number = model.tables.pop(table, None)
            assert await done(drop_table(catalog, ROOT, table)) == (number is not None)
            if number is not None:
                model.dropped.append((number, table, model.now_s))
        case "rename":
            onto = rng.choice(TABLES)
            can = table in model.tables and onto not in model.tables
            assert await done(rename_table(catalog, ROOT, table, onto)) == can
            if can:
                model.tables[onto] = model.tables.pop(table)
        case "restore" if model.dropped:
            number, was, _ = model.dropped[-1]
            entries = (await list_dropped(catalog, ROOT, size=100)).entries
            can = was not in model.tables
            assert await done(restore_dropped(catalog, ROOT, entries[-1][0])) == can
            if can:
                model.dropped.pop()
                model.tables[was] = number
        case "wait":
            waited_s = rng.uniform(60, 240)
            await clock.advance(waited_s)
            await forget_dropped(catalog, ROOT)
            model.forget(waited_s)
        case "end":
            is_attached = any(each == name for each, _ in model.attached)
            can = name in model.policies and not is_attached
            assert await done(drop_policy(catalog, ROOT, policy(name))) == can
            if can:
                del model.policies[name]


async def done(work: Awaitable[object]) -> bool:
    try:
        await work
    except CynosureError:
        return False
    return True


async def agree(catalog: OpenCatalog, model: Model) -> None:
    state = await catalog.read()
    for table in model.tables:
        found = await load_attached(state, catalog.table(table))
        assert [each.name for each in found] == model.expected(table)
    entries = dict(await state.scan(MAPPINGS, limit=1_000))
    assert len(entries) == 2 * len(model.attached)
    for key, value in entries.items():
        if key.startswith(b"t"):
            assert entries[b"p" + key[10:] + key[1:10]] == value
