"""What all statements of a gateway share."""

import asyncio
from typing import Any

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.query.coordinator.distribution import Choice, Facts, choose_engine
from cynosure.query.coordinator.thinking import Thinking
from cynosure.query.engine import Cluster, Engine, EngineQuery, WorkerInfo
from cynosure.query.settings import QuerySettings


class Resources(Struct, frozen=True):
    """Engines, settings, time."""

    settings: QuerySettings
    clock: Clock
    local: Engine | None
    spark: Engine | None
    cluster: Cluster | None
    storage: dict[str, Any]
    """`ScanTask.storage`."""
    file_roots: tuple[str, ...]
    thinking: Thinking
    choosing: asyncio.Lock
    """Held while engines are asked whether they can run a query, in a thread: one question at a time."""

    async def choose(self, query: EngineQuery, facts: Facts) -> Choice:
        """The engine of a query; see `choose_engine`."""
        # An engine may lower the whole statement to answer, which takes its time.
        async with self.choosing:
            return await asyncio.to_thread(
                choose_engine,
                query,
                facts,
                local=self.local,
                spark=self.spark,
                distribute_above=self.settings.distribute_above,
            )

    async def load_workers(self) -> list[WorkerInfo] | None:
        """Who could scan; None without a cluster."""
        return None if self.cluster is None or self.spark is None else list(await self.cluster.workers())
