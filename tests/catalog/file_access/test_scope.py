from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_access.scope import scope_of, table_scope
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import TableState
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.tables import T, change, make

pytestmark = pytest.mark.anyio


async def state_of(catalog: OpenCatalog, table: Identifier = T) -> TableState:
    view = await catalog.read()
    return (await load_table_at(view, (await require_table_ref(view, table)).id, catalog.shared.tables)).state


def texts(catalog: OpenCatalog, state: TableState) -> list[str]:
    return [each.text for each in table_scope(catalog, state, is_writable=True).locations]


async def tighten(directory: Directory, name: str, *allowed: str) -> OpenCatalog:
    update = CatalogUpdate(base_location=allowed[0], storage=FileStorage(allowed_locations=allowed))
    await update_catalog(directory, ROOT, name, update)
    return await directory.open(DEFAULT_REALM, name)


async def test_a_scope_is_all_that_the_table_holds_and_nothing_twice(catalog: OpenCatalog) -> None:
    base = catalog.base.text
    await make(catalog, location=f"{base}/one", properties={"write.data.path": f"{base}/data"})
    await change(catalog, {"action": "set-location", "location": f"{base}/two"})

    state = await state_of(catalog)
    assert texts(catalog, state) == [f"{base}/two", f"{base}/data", f"{base}/one"]
    assert table_scope(catalog, state, is_writable=True).is_writable
    assert not table_scope(catalog, state, is_writable=False).is_writable
    assert table_scope(catalog, state, is_writable=True) is table_scope(catalog, state, is_writable=True)


async def test_a_claim_around_the_location_stands_for_it(catalog: OpenCatalog) -> None:
    base = catalog.base.text
    await make(catalog, location=f"{base}/dir/t", properties={"write.data.path": f"{base}/dir"})
    assert texts(catalog, await state_of(catalog)) == [f"{base}/dir"]


async def test_what_the_catalog_does_not_allow_now_is_given_to_nobody(
    directory: Directory, tmp_path: Path
) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    await create_namespace(catalog, ROOT, ("ns",), {})
    base = catalog.base.text
    inside, path = Identifier(("ns",), "inside"), Identifier(("ns",), "path")
    await make(catalog, T, location=f"{base}/old/t")
    await make(catalog, path, location=f"{base}/new/p", properties={"write.data.path": f"{base}/old/p"})
    await make(catalog, inside, location=f"{base}/old/i")
    await change(catalog, {"action": "set-location", "location": f"{base}/new/i"}, table=inside)
    before = [await state_of(catalog, each) for each in (T, path, inside)]
    assert len(texts(catalog, before[2])) == 2

    now = await tighten(directory, "lake", f"{base}/new")

    for state in before[:2]:
        with pytest.raises(LocationRefused, match="does not allow"):
            table_scope(now, state, is_writable=False)
    # A table that has moved away in time is not lost: only what it left behind is.
    assert texts(now, before[2]) == [f"{base}/new/i"]
    with pytest.raises(LocationRefused):
        scope_of(now, f"{base}/old/x", is_writable=True)
    assert texts(await tighten(directory, "lake", f"{base}/new", f"{base}/old"), before[0]) == [
        f"{base}/old/t"
    ]


async def test_a_path_that_nobody_claimed_is_not_part_of_the_scope(catalog: OpenCatalog) -> None:
    """Of states that are older than claims; the next commit claims it."""
    base = catalog.base.text
    scope = scope_of(catalog, f"{base}/t", (), {"write.data.path": f"{base}/data"}, is_writable=True)
    assert [each.text for each in scope.locations] == [f"{base}/t"]
