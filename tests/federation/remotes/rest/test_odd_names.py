"""Names of a REST remote that cannot be names here are told, and never asked for."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.federation.reconcile import reconcile
from cynosure.federation.remote import RemoteCatalog
from cynosure.testing import lying_remote as lies
from cynosure.testing.lying_remote import Heard
from cynosure.testing.small_catalog import ROOT
from tests.federation.migration.moving import migration
from tests.federation.seen_world import Far, open_far

from .liars import Liar

pytestmark = pytest.mark.anyio

ODD = ("..", "bad\x1b[31m", "x" * 300)
TOLD = ("..", "bad\x1b[31m", "x" * 256)


@pytest.fixture
async def remote(liar: Liar) -> RemoteCatalog:
    """Has a namespace, a view, and names that are none here."""

    async def namespaces(heard: Heard, writer: asyncio.StreamWriter) -> None:
        below: list[list[str]] = [] if "parent" in heard.query else [["sales"], [".."]]
        await lies.answer({"namespaces": below})(heard, writer)

    def identifiers(*names: str) -> lies.Lie:
        return lies.answer({"identifiers": [{"namespace": ["sales"], "name": name} for name in names]})

    liar.server.says("GET", "/namespaces", namespaces)
    liar.server.says("GET", "/namespaces/sales", lies.answer({"namespace": ["sales"], "properties": {}}))
    liar.server.says("GET", "/tables", identifiers(*ODD))
    liar.server.says("GET", "/views", identifiers())
    return liar.open()


@pytest.fixture
async def far(remote: RemoteCatalog, tmp_path: Path) -> AsyncIterator[Far]:
    """A catalog before it."""
    async with open_far(tmp_path / "files", remote=remote) as opened:
        yield opened


async def test_they_are_obstacles_to_a_migration_in_place(far: Far, liar: Liar) -> None:
    found = await migration(far).survey()

    assert [each.path for each in found.obstacles] == [("..",), *(("sales", name) for name in TOLD)]
    assert {each.reason for each in found.obstacles} == {"the name cannot be one here"}
    assert liar.server.heard_at("..") == []


async def test_they_are_told_when_the_mirror_is_compared(far: Far, liar: Liar) -> None:
    await far.federation.see_namespace(far.catalog, ROOT, ("sales",))

    found = await reconcile(far.federation.clients, far.catalog, ROOT, is_mending=True)

    assert [(each.path, each.difference) for each in found.drifts] == [
        (("sales", name), "name-not-allowed") for name in TOLD
    ]
    assert liar.server.heard_at("..") == []
