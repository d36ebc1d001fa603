"""What the remote has and cannot read because its metadata file is gone: it stays until it is dropped."""

from typing import Never

import pytest

from cynosure.catalog.errors import NoSuchView
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.load_view import load_view
from cynosure.storage.errors import FileMissing
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, T
from tests.federation.writes.changes import Passing, make_table, view_creation

pytestmark = pytest.mark.anyio
V = Identifier(NS, "v")


async def fail(*_: object) -> Never:
    raise FileMissing("The metadata file is missing")


async def test_a_table_without_its_file_keeps_its_id_and_is_dropped(
    here: Passing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_table(here)
    before = await here.far.id_of()
    monkeypatch.setattr(here.remote, "load_table", fail)

    with pytest.raises(FileMissing):
        await here.far.federation.see_table(here.far.catalog, ROOT, T, is_fresh=True)
    assert await here.far.id_of() == before
    with pytest.raises(FileMissing):
        await here.writes.unregister_table(here.far.catalog, ROOT, T)
    await here.writes.drop_table(here.far.catalog, ROOT, T)

    assert T not in here.remote.tables
    assert await here.far.disagreements() == []


async def test_a_view_without_its_file_is_dropped(here: Passing, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_table(here)
    await here.writes.create_view(here.far.catalog, ROOT, view_creation(V))
    monkeypatch.setattr(here.remote, "load_view", fail)

    await here.writes.drop_view(here.far.catalog, ROOT, V)

    assert V not in here.remote.views
    with pytest.raises(NoSuchView):
        await load_view(here.far.catalog, ROOT, V)
