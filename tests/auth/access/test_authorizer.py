"""The internal authorizer passes the kit, in memory and on SQLite (I33, I34)."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.caller import Caller
from cynosure.auth.standing import Standings
from cynosure.persistence.commit import View
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.spi import CatalogId, ObjId, RefKey
from cynosure.testing.access_world import AccessWorld, World
from cynosure.testing.authorizer_kit import AuthorizerKit


class InternalStage:
    """A store with one catalog."""

    def __init__(self, world: AccessWorld) -> None:
        self.world = world

    @property
    def catalog(self) -> CatalogId:
        return self.world.catalog

    async def make(self, world: World) -> None:
        await self.world.make(world)

    def open_handle(self) -> InternalAuthorizer:
        persistence = self.world.persistence
        return InternalAuthorizer(persistence, Standings(persistence))

    def caller(self, principal: str, scope: Iterable[str] | None = None) -> Caller:
        return self.world.caller(principal, scope)

    async def view(self) -> View:
        return await self.world.view()

    async def fetch_head(self, key: RefKey) -> ObjId:
        return (await self.world.persistence.heads.load(key)).head


class TestInMemory(AuthorizerKit):
    @pytest.fixture
    async def stage(self) -> AsyncIterator[InternalStage]:
        async with open_persistence("memory:", initialise=True) as persistence:
            world = AccessWorld(persistence)
            await world.setup()
            yield InternalStage(world)


class TestOnSqlite(AuthorizerKit):
    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[InternalStage]:
        async with open_persistence(f"sqlite:{tmp_path / 'store.db'}", initialise=True) as persistence:
            world = AccessWorld(persistence)
            await world.setup()
            yield InternalStage(world)
