"""The servers that all chapters of the kit speak to."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.testing.idempotency_kit.world import CATALOGS, QUICK, Side
from cynosure.testing.small_servers import OpenStore, SmallServer, SmallServers


class Fixtures:
    """Two servers on one store, and others with settings of their own."""

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """Of all servers: they share a keyring."""
        return tmp_path_factory.mktemp("servers")

    @pytest.fixture(scope="class")
    @classmethod
    async def pair(
        cls, open_store: OpenStore, folder: Path
    ) -> AsyncIterator[tuple[SmallServer, SmallServer]]:
        """Two servers that all tests of the class share."""
        async with SmallServers(open_store, folder) as servers:
            yield await servers.start(**QUICK), await servers.start(**QUICK)

    @pytest.fixture
    async def servers(self, open_store: OpenStore, folder: Path) -> AsyncIterator[SmallServers]:
        """For servers with settings of their own, on the same store."""
        async with SmallServers(open_store, folder) as servers:
            yield servers

    @pytest.fixture
    async def first(self, pair: tuple[SmallServer, SmallServer]) -> AsyncIterator[Side]:
        """A server, with a catalog of this test."""
        yield await self.furnished(pair[0])
        for server in pair:
            server.gate.reset()

    @pytest.fixture
    def second(self, pair: tuple[SmallServer, SmallServer], first: Side) -> Side:
        """Another one on the same store."""
        return first._replace(server=pair[1])

    async def furnished(self, server: SmallServer) -> Side:
        name = f"lake-{uuid.uuid4().hex[:8]}"
        location = (server.settings.server.data_dir / name).as_uri()
        wanted = {
            "type": "INTERNAL",
            "name": name,
            "properties": {"default-base-location": location},
            "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
        }
        made = await server.http.post(CATALOGS, json={"catalog": wanted})
        assert made.status_code == 201, made.text
        return Side(server, f"/api/catalog/v1/{name}")

    async def both(self, servers: SmallServers, **settings: str) -> tuple[Side, Side]:
        """Two servers with these settings."""
        first = await self.furnished(await servers.start(**settings))
        return first, first._replace(server=await servers.start(**settings))
