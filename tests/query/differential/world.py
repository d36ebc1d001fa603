"""Statements by several users through all gateways, many at once."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pyarrow as pa

from cynosure.testing.login import Credential
from cynosure.testing.query_server import QueryScene, run_to_end
from tests.delegation.spark.world import Loop
from tests.query.served import ENGINES, Served

AT_ONCE = 3
"""Statements that run at the same time: while one waits, another works."""
IS_SOAK = os.environ.get("CYNOSURE_SOAK_GOVERNED") == "1"
PATIENCE_S = 3600.0 if IS_SOAK else 280.0

Answer = pa.Table | dict[str, Any]
"""Rows, or an error as the API tells it."""


def share(engine: str, of: int) -> int:
    """One of how many statements an engine runs: all in `./dev soak governed`; else Spark runs fewer."""
    return 1 if IS_SOAK or engine == "local" else of


def start_of(engine: str) -> int:
    """With which statement it begins: the engines on Spark run different ones."""
    return 0 if IS_SOAK else ENGINES.index(engine)


@dataclass
class Gateways:
    """Who answers."""

    loop: Loop
    served: Served
    scene: QueryScene
    users: dict[str, Credential]
    seen: dict[str, pa.Table]
    """The rows of the copy."""
    _clients: dict[tuple[str, str], httpx.AsyncClient] = field(default_factory=dict)

    def ask(self, engine: str, user: str, namespace: str, statements: Iterable[str]) -> list[Answer]:
        """What each statement answers."""
        return self.loop.run(self._ask(engine, user, namespace, list(statements)), PATIENCE_S)

    async def _ask(self, engine: str, user: str, namespace: str, statements: list[str]) -> list[Answer]:
        http = await self._client(engine, user)
        turns = asyncio.Semaphore(AT_ONCE)

        async def run(sql: str) -> Answer:
            async with turns:
                return await run_to_end(http, sql, catalog=self.scene.lake.name, namespace=namespace)

        return list(await asyncio.gather(*map(run, statements)))

    async def _client(self, engine: str, user: str) -> httpx.AsyncClient:
        if (engine, user) not in self._clients:
            scene = await self.served.at(engine)
            self._clients[engine, user] = scene.client(self.users[user])
        return self._clients[engine, user]

    def close(self) -> None:
        """Let go of connections."""

        async def close() -> None:
            for each in self._clients.values():
                await each.aclose()

        self.loop.run(close())
