"""Claims against an oracle that knows nothing but a list of (place, owner) and compares beginnings of text.

Histories of creations, moves, paths, drops, restores and reservations: the catalog accepts and refuses what
the list says, and at every moment the index holds exactly the list.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.catalog.consistency import find_disagreements
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreatedTable, CreateTable, create_table
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.persistence.index import decode_key
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.tables import change
from tests.catalog.test_staged import creation

NAMES = ("t0", "t1", "t2")
# Few, and alike: `a` and `ab` are neighbours, `a` and `a/b` are not.
PLACES = ("a", "ab", "a/b", "a/b/c", "b", "b/a", "b/ab", "a/bb", "c")
DATA = "write.data.path"

Kind = Literal["create", "stage", "commit", "move", "path", "unset", "drop", "restore"]


class Step(msgspec.Struct, frozen=True):
    kind: Kind
    table: str
    place: str
    path: str | None


steps = st.builds(
    Step,
    kind=st.sampled_from(["create", "create", "stage", "commit", "move", "path", "unset", "drop", "restore"]),
    table=st.sampled_from(NAMES),
    place=st.sampled_from(PLACES),
    path=st.none() | st.sampled_from(PLACES),
)


@dataclass
class Oracle:
    """Who holds what, as a list."""

    held: dict[str, set[str]] = field(default_factory=dict)
    """By table: all places, also those inside another."""
    staged: list[tuple[str, set[str], CreatedTable]] = field(default_factory=list)
    dropped: list["Dropped"] = field(default_factory=list)
    """In the order of their drops."""

    def is_free(
        self, place: str, table: str, *, is_begun_anew: bool = False, restored: "Dropped | None" = None
    ) -> bool:
        others = [each for owner, places in self.held.items() if owner != table for each in places]
        # What the same principal reserved for the same name gives way to a new beginning only; what it
        # dropped, to all that it does but restoring something else.
        for owner, places, _ in self.staged:
            others += [] if is_begun_anew and owner == table else places
        if restored is not None:
            for each in self.dropped:
                others += each.places if each.is_holding and each is not restored else []
        return not any(_overlap(place, other) for other in others)

    def find_dropped(self, table: str) -> "Dropped | None":
        return next((each for each in reversed(self.dropped) if each.table == table), None)


@dataclass(eq=False)
class Dropped:
    """A table that was dropped."""

    table: str
    places: set[str]
    is_holding: bool = True
    """Until somebody begins anew where it was."""


def _overlap(one: str, other: str) -> bool:
    one, other = f"{one}/", f"{other}/"
    return one.startswith(other) or other.startswith(one)


class Run:
    """One history, on a catalog and on the list."""

    def __init__(self, catalog: OpenCatalog) -> None:
        self.catalog = catalog
        self.oracle = Oracle()
        self.made: CreatedTable | None = None

    def at(self, place: str) -> str:
        return f"{self.catalog.base.text}/{place}"

    async def do(self, step: Step) -> None:
        expected = getattr(self, f"expect_{step.kind}")(step)
        if expected is None:
            return
        try:
            await getattr(self, step.kind)(step)
            is_done = True
        except LocationRefused:
            is_done = False
        assert is_done == (expected != "refused"), (step, self.oracle)
        if is_done:
            getattr(self, f"note_{step.kind}")(step)
        await self.check()

    async def check(self) -> None:
        entries = await (await self.catalog.read()).scan("locations", limit=1_000)
        base = len(self.catalog.base.key())
        by_owner: dict[bytes, set[str]] = {}
        for key, owner in entries:
            by_owner.setdefault(owner, set()).add("/".join(decode_key(key)[base:]))
        wanted = [*self.oracle.held.values(), *(places for _, places, _ in self.oracle.staged)]
        wanted += [each.places for each in self.oracle.dropped if each.is_holding]
        assert sorted(map(_covers, by_owner.values())) == sorted(map(_covers, wanted))
        assert await find_disagreements(await self.catalog.read()) == []

    # --- create and stage: a name that is free, at a place that is
    def expect_create(self, step: Step) -> str | None:
        if step.table in self.oracle.held:
            return None
        places = {step.place, step.path or step.place}
        is_free = all(self.oracle.is_free(each, step.table, is_begun_anew=True) for each in places)
        return "done" if is_free else "refused"

    expect_stage = expect_create

    async def create(self, step: Step) -> None:
        await create_table(self.catalog, ROOT, self.wanted(step))

    async def stage(self, step: Step) -> None:
        wanted = msgspec.structs.replace(self.wanted(step), is_staged=True)
        self.made = await create_table(self.catalog, ROOT, wanted, delegation=ANY_WAY)

    def wanted(self, step: Step) -> CreateTable:
        properties = {DATA: self.at(step.path)} if step.path else {}
        return CreateTable(("ns",), step.table, SCHEMA, location=self.at(step.place), properties=properties)

    def note_create(self, step: Step) -> None:
        places = {step.place, step.path or step.place}
        self.give_way(step.table, places)
        self.oracle.held[step.table] = places

    def note_stage(self, step: Step) -> None:
        places = {step.place, step.path or step.place}
        self.give_way(step.table, places)
        assert self.made is not None
        self.oracle.staged.append((step.table, places, self.made))

    def give_way(self, table: str, places: set[str]) -> None:
        self.oracle.staged = [
            (owner, before, made)
            for owner, before, made in self.oracle.staged
            if owner != table or not any(_overlap(one, other) for one in before for other in places)
        ]
        self.give_way_of_dropped(places)

    def give_way_of_dropped(self, places: set[str]) -> None:
        for each in self.oracle.dropped:
            if any(_overlap(one, other) for one in each.places for other in places):
                each.is_holding = False

    # --- the commit that creates what was staged
    def expect_commit(self, step: Step) -> str | None:
        is_promised = any(owner == step.table for owner, _, _ in self.oracle.staged)
        return "done" if is_promised and step.table not in self.oracle.held else None

    async def commit(self, step: Step) -> None:
        _, _, promised = next(each for each in self.oracle.staged if each[0] == step.table)
        await commit_table(self.catalog, ROOT, creation(promised, Identifier(("ns",), step.table)))

    def note_commit(self, step: Step) -> None:
        kept = next(each for each in self.oracle.staged if each[0] == step.table)
        self.oracle.staged.remove(kept)
        self.oracle.held[step.table] = kept[1]

    # --- changes of a table that is there
    def expect_move(self, step: Step) -> str | None:
        if step.table not in self.oracle.held:
            return None
        return "done" if self.oracle.is_free(step.place, step.table) else "refused"

    expect_path = expect_move

    async def move(self, step: Step) -> None:
        await self.change(step, {"action": "set-location", "location": self.at(step.place)})

    async def path(self, step: Step) -> None:
        await self.change(step, {"action": "set-properties", "updates": {DATA: self.at(step.place)}})

    def note_move(self, step: Step) -> None:
        self.give_way_of_dropped({step.place})
        self.oracle.held[step.table].add(step.place)

    note_path = note_move

    def expect_unset(self, step: Step) -> str | None:
        return "done" if step.table in self.oracle.held else None

    async def unset(self, step: Step) -> None:
        await self.change(step, {"action": "remove-properties", "removals": [DATA]})

    def note_unset(self, step: Step) -> None:
        pass

    async def change(self, step: Step, update: dict[str, Any]) -> None:
        await change(self.catalog, update, table=Identifier(("ns",), step.table))

    # --- drop and restore
    def expect_drop(self, step: Step) -> str | None:
        return "done" if step.table in self.oracle.held else None

    async def drop(self, step: Step) -> None:
        await drop_table(self.catalog, ROOT, Identifier(("ns",), step.table))

    def note_drop(self, step: Step) -> None:
        self.oracle.dropped.append(Dropped(step.table, self.oracle.held.pop(step.table)))

    def expect_restore(self, step: Step) -> str | None:
        dropped = self.oracle.find_dropped(step.table)
        if dropped is None or step.table in self.oracle.held:
            return None
        is_free = all(self.oracle.is_free(each, step.table, restored=dropped) for each in dropped.places)
        return "done" if is_free else "refused"

    async def restore(self, step: Step) -> None:
        for drop_id, dropped in reversed((await list_dropped(self.catalog, ROOT, size=100)).entries):
            if dropped.path == ("ns", step.table):
                await restore_dropped(self.catalog, ROOT, drop_id)
                return

    def note_restore(self, step: Step) -> None:
        dropped = self.oracle.find_dropped(step.table)
        assert dropped is not None
        self.oracle.dropped.remove(dropped)
        self.oracle.held[step.table] = dropped.places


def _covers(places: set[str]) -> tuple[str, ...]:
    """What a set of places amounts to: which of all possible places are inside it."""
    return tuple(each for each in PLACES if any(f"{each}/".startswith(f"{one}/") for one in places))


@settings(max_examples=60, deadline=None)
@given(history=st.lists(steps, max_size=14))
def test_claims_are_what_a_list_and_beginnings_of_text_say(history: list[Step]) -> None:
    async def run() -> None:
        with TemporaryDirectory() as folder:
            async with open_directory_in(Path(folder)) as directory:
                catalog = vending(await make_catalog(directory, Path(folder)), MemoryVendor())
                await create_namespace(catalog, ROOT, ("ns",), {})
                run = Run(catalog)
                for step in history:
                    await run.do(step)

    asyncio.run(run())


@settings(max_examples=25, deadline=None)
@given(
    first=st.lists(st.sampled_from(PLACES), min_size=1, max_size=3),
    second=st.lists(st.sampled_from(PLACES), min_size=1, max_size=3),
)
def test_of_two_creators_at_once_at_most_those_win_that_do_not_overlap(
    first: list[str], second: list[str]
) -> None:
    async def create(catalog: OpenCatalog, name: str, places: list[str]) -> bool:
        base = catalog.base.text
        wanted = CreateTable(("ns",), name, SCHEMA, location=f"{base}/{places[0]}")
        try:
            await create_table(catalog, ROOT, wanted)
            for place in places[1:]:
                table = Identifier(("ns",), name)
                await change(catalog, {"action": "set-location", "location": f"{base}/{place}"}, table=table)
        except LocationRefused:
            return False
        return True

    async def run() -> None:
        with TemporaryDirectory() as folder:
            async with open_directory_in(Path(folder)) as directory:
                catalog = await make_catalog(directory, Path(folder))
                await create_namespace(catalog, ROOT, ("ns",), {})
                done = await asyncio.gather(create(catalog, "t0", first), create(catalog, "t1", second))
                is_apart = not any(_overlap(one, other) for one in first for other in second)
                assert all(done) == is_apart
                entries = await (await catalog.read()).scan("locations", limit=100)
                held = [("/".join(decode_key(key)), owner) for key, owner in entries]
                assert not any(_overlap(one, other) for one, a in held for other, b in held if a != b), (
                    "never overlapping, whoever won"
                )

    asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(
    history=st.lists(
        st.tuples(
            st.sampled_from(("c0", "c1", "c2")), st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)
        ),
        max_size=8,
    )
)
def test_catalogs_never_share_a_place_whatever_is_taken_from_them(
    history: list[tuple[str, list[str]]],
) -> None:
    """Nothing is released here, so what a catalog had once stays its own."""
    held: dict[str, set[str]] = {}

    async def allow(directory: Directory, root: Path, name: str, places: list[str]) -> None:
        texts = tuple(f"file://{root}/{each}" for each in places)
        storage = FileStorage(allowed_locations=texts)
        if name in held:
            update = CatalogUpdate(base_location=texts[0], storage=storage)
            await update_catalog(directory, ROOT, name, update)
        else:
            wanted = NewCatalog(name=name, base_location=texts[0], storage=storage)
            await create_catalog(directory, ROOT, wanted)

    async def run() -> None:
        with TemporaryDirectory() as folder:
            async with open_directory_in(Path(folder)) as directory:
                for name, places in history:
                    others = [each for owner, theirs in held.items() if owner != name for each in theirs]
                    is_free = not any(_overlap(one, other) for one in places for other in others)
                    try:
                        await allow(directory, Path(folder), name, places)
                        is_done = True
                    except LocationRefused:
                        is_done = False
                    assert is_done == is_free
                    if is_done:
                        held.setdefault(name, set()).update(places)
                        opened = await directory.open(DEFAULT_REALM, name)
                        assert {each.text for each in opened.allowed} == {
                            f"file://{folder}/{p}" for p in places
                        }

    asyncio.run(run())
