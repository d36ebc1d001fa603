"""Two who move tables into one catalog at once, which has no room for both.

Holds I123.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cynosure.catalog.adopting import keeping_room
from cynosure.catalog.listed import MAX_LOCATIONS
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.errors import Conflict
from cynosure.federation.migration import cede as ceding
from cynosure.persistence.index import encode_key
from cynosure.persistence.spi import CatalogId
from cynosure.storage.config import FileStorage
from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.small_catalog import ROOT
from tests.federation.federated import make_federated
from tests.federation.migration.into_world import OURS, Two, make_catalog
from tests.federation.migration.moving import Killed, ask, migration
from tests.federation.seen_world import NS, Far, make_federation

pytestmark = pytest.mark.anyio

ROOM = 5
FIRST, SECOND = ("a0", "a1", "a2"), ("b0", "b1", "b2")


@pytest.fixture
async def two(far: Far) -> Two:
    """Three tables, and a catalog with room for five places."""
    made = Two(far)
    entity = (await make_catalog(far)).entity
    await put_all(made, FIRST)
    above = entity.base_location.rpartition("/")[0]
    places = tuple(f"{above}/extra{number}" for number in range(MAX_LOCATIONS - 1 - ROOM))
    storage = FileStorage(allowed_locations=(entity.base_location, *places))
    await update_catalog(far.directory, ROOT, "ours", CatalogUpdate(storage=storage))
    return made


@pytest.fixture
async def other(two: Two, tmp_path: Path) -> AsyncIterator[Two]:
    """Another federated catalog, with three tables, too."""
    directory, remote = two.far.directory, MemoryRemote()
    catalog = await make_federated(directory, tmp_path / "files", "faraway")
    federation = make_federation(tmp_path, remote, directory.shared.persistence.clock)
    made = Two(Far(directory, catalog, remote, federation))
    await put_all(made, SECOND, first=100)
    yield made
    await federation.close()


async def put_all(two: Two, names: tuple[str, ...], *, first: int = 10) -> None:
    for number, name in enumerate(names):
        uuid = f"00000000-0000-4000-8000-{first + number:012}"
        await two.put(Identifier(NS, name), f"{name}-flat", uuid=uuid)


async def prepare(two: Two, names: tuple[str, ...]) -> None:
    await two.prepare_giving(*(Identifier(NS, name) for name in names))


async def test_who_comes_second_is_refused_while_there_is_a_way_back(
    two: Two, other: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = dict(other.far.remote.tables)
    await prepare(two, FIRST)
    await prepare(other, SECOND)

    async def cut_off(*given: Any) -> None:
        raise Killed

    # The first one has given its places away, and the list does not have them as those of the other yet.
    monkeypatch.setattr(ceding, "adopt_locations", cut_off)
    with pytest.raises(Killed):
        await ask(two.far, {"step": "cede"})
    monkeypatch.undo()

    with pytest.raises(Conflict, match="too many locations") as refused:
        await ask(other.far, {"step": "cede"})
    assert refused.value.details["kept_for"] == "far: 3"
    assert refused.value.details["room"] == ROOM - len(FIRST)
    assert (await ask(other.far, {"step": "status"})).phase == "taking"
    assert (await migration(other.far).cancel()).phase == "none"
    assert other.far.remote.tables == there
    assert (await migration(two.far).move(OURS)).phase == "done"
    assert await two.disagreements() == []


async def test_two_at_once_never_have_more_than_there_is_room_for(
    two: Two, other: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(two, FIRST)
    await prepare(other, SECOND)
    keep = ceding.keep_room

    async def overtaken(*given: Any) -> None:
        monkeypatch.undo()
        # Both have looked before one of them keeps its room.
        await ask(other.far, {"step": "cede"})
        await keep(*given)

    monkeypatch.setattr(ceding, "keep_room", overtaken)
    with pytest.raises(Conflict, match="too many locations"):
        await ask(two.far, {"step": "cede"})

    assert (await ask(two.far, {"step": "status"})).phase == "taking"
    assert (await migration(other.far).move(OURS)).phase == "done"


async def test_a_dry_run_counts_what_others_are_about_to_give(two: Two, other: Two) -> None:
    await prepare(two, FIRST)
    await ask(two.far, {"step": "cede"})
    chosen = structs.replace(OURS, tables=tuple(("ns", name) for name in SECOND))

    told = await migration(other.far).survey(chosen)

    assert [each.path for each in told.obstacles] == [("ours",)]
    assert "2 locations more" in told.obstacles[0].reason


async def test_room_is_given_back_at_the_end(two: Two, other: Two) -> None:
    await prepare(two, FIRST)
    await ask(two.far, {"step": "cede"})
    await migration(two.far).move(OURS)

    assert await (await (await two.open()).read()).scan("adopting", limit=1) == []
    chosen = structs.replace(OURS, tables=tuple(("ns", name) for name in SECOND[:2]))
    assert (await migration(other.far).move(chosen)).phase == "done"
    assert len((await two.open()).entity.storage.allowed_locations) == MAX_LOCATIONS
    assert await two.disagreements() == []


def test_room_is_stored_as_it_was() -> None:
    (index,) = keeping_room(CatalogId("17"), ("file:///a",)).values()

    assert index == {encode_key("room", "17"): bytes.fromhex("91a966696c653a2f2f2f61")}
