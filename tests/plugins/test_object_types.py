"""An object type of another package: stored without a schema change, kept when the package is gone."""

import importlib
from pathlib import Path

import pytest

from cynosure.common.errors import Misconfigured, UnknownType
from cynosure.persistence.commit import Prepared, Request, View, find_object
from cynosure.persistence.core_types import load_types
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.objects import ObjectType, ObjRef, TypeRegistry
from cynosure.persistence.references import catalog_reference, ensure_reference
from cynosure.persistence.settings import GcSettings, PersistenceSettings
from cynosure.persistence.spi import CatalogId, ObjId, RealmId
from cynosure.persistence.store import NewObject
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio
MAIN = catalog_reference(RealmId("default"), CatalogId("c"), "main")
SETTINGS = PersistenceSettings(gc=GcSettings(rows_per_second=0))


def tally_report() -> ObjectType[object]:
    return importlib.import_module("cynosure_tally.types").TALLY_REPORT


async def write_reports(persistence: Persistence) -> list[ObjId]:
    """Two reachable reports, one pointing to the other, and one that nothing points to."""
    types = importlib.import_module("cynosure_tally.types")
    first, second, loose = (persistence.ids.next() for _ in range(3))
    await ensure_reference(persistence.backend, MAIN, persistence.clock)

    async def prepare(view: View) -> Prepared[None]:
        objects = [
            NewObject(types.TALLY_REPORT, first, types.TallyReport(calls={"fetch": 1})),
            NewObject(types.TALLY_REPORT, second, types.TallyReport(calls={"fetch": 2}, previous=first)),
            NewObject(types.TALLY_REPORT, loose, types.TallyReport(calls={})),
        ]
        return Prepared(None, {"names": {b"report": ObjRef(second, "tally-report").pack()}}, objects)

    await persistence.committer(MAIN).commit(Request(prepare, "tester", "report"))
    return [first, second, loose]


@pytest.mark.usefixtures("tally_installed")
async def test_a_type_of_an_installed_package_is_stored_found_and_collected() -> None:
    clock = ManualClock()
    async with open_persistence("memory:", SETTINGS, initialise=True, clock=clock) as persistence:
        first, _, loose = await write_reports(persistence)
        await clock.advance(4 * 3600)

        report = await persistence.collector().run()

        state = (await persistence.committer(MAIN).read()).state
        found = await find_object(state, "names", b"report", tally_report())
        assert found.previous == first  # type: ignore[attr-defined]
        assert report.deleted == 1
        assert await persistence.backend.fetch([state.store.key(tally_report(), loose)]) == [None]


@pytest.mark.usefixtures("tally_installed")
async def test_objects_of_a_package_that_was_removed_survive_a_collection() -> None:
    """I17, I20."""
    clock = ManualClock()
    async with open_persistence("memory:", SETTINGS, initialise=True, clock=clock) as persistence:
        ids = await write_reports(persistence)
        await clock.advance(4 * 3600)
        installed = [each for each in persistence.types if each.name != "tally-report"]
        persistence.types = TypeRegistry(installed)

        assert (await persistence.collector().run()).deleted == 0
        rows = await persistence.backend.fetch(
            [persistence.store(MAIN.realm, MAIN.catalog).key(tally_report(), each) for each in ids]
        )
        assert None not in rows
        with pytest.raises(UnknownType, match="tally-report"):
            persistence.types.get("tally-report")


async def test_a_package_whose_types_cannot_be_loaded_is_named(install, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "pyproject.toml").write_text(
        '[project]\nname = "broken-types"\nversion = "1"\n'
        '[project.entry-points."cynosure.object_types"]\nbroken = "no_such_module:TYPES"\n'
    )
    install(broken)

    with pytest.raises(Misconfigured, match="broken-types"):
        load_types()
