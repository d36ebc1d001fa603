"""Statements sent to a service, and their rows."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa

from cynosure.common.clock import SystemClock
from cynosure.query.catalog_access.port import CatalogSession
from cynosure.query.coordinator.service import StatementService
from cynosure.query.coordinator.statement import State, StatementInfo, StatementRequest
from cynosure.query.engine import EngineQuery
from cynosure.query.settings import QuerySettings
from cynosure.testing.small_engine import SmallEngine
from tests.query.governed_world import NS, World

ENDED = (State.FINISHED, State.FAILED, State.CANCELED)


def nothing(query: EngineQuery) -> pa.Table:
    """An empty answer with the columns of the query."""
    return pa.table({f"c{at}": pa.array([], pa.string()) for at, _ in enumerate(query.columns)})


@asynccontextmanager
async def open_service(
    local: Any = None, *, settings: QuerySettings | None = None, **more: Any
) -> AsyncIterator[StatementService]:
    service = StatementService(
        settings or QuerySettings(),
        SystemClock(),
        random.Random(1),
        **{"local": local, "spark": None, "cluster": None, **more},
    )
    try:
        yield service
    finally:
        await service.close()


def request(sql: str, **more: Any) -> StatementRequest:
    return StatementRequest(sql, **{"catalog": "lake", "namespace": NS, **more})


async def finish(
    service: StatementService, session: CatalogSession, info: StatementInfo, *, wait_s: float = 5.0
) -> StatementInfo:
    """Wait for the end, asking every so many seconds."""
    while info.state not in ENDED:
        info = await service.get(session, info.id, wait_s=wait_s)
    return info


async def ask(
    service: StatementService, session: CatalogSession, sql: str, **more: Any
) -> tuple[StatementInfo, list[dict[str, Any]]]:
    """A statement with all of its rows; its error is raised."""
    info = await service.submit(session, request(sql, **more))
    rows: list[dict[str, Any]] = []
    number: int | None = 1
    while number is not None:
        page = await service.fetch(session, info.id, number, wait_s=5.0)
        if page is not None:
            rows += [row for batch in page.batches for row in batch.to_pylist()]
            number = page.next
    return await finish(service, session, info), rows


async def ask_small(
    world: World, user: str, sql: str, engine: SmallEngine | None = None, **more: Any
) -> tuple[StatementInfo, EngineQuery | None]:
    """What an engine is asked for a statement."""
    engine = engine or SmallEngine(nothing)
    async with open_service(engine) as service:
        info, _ = await ask(service, await world.open(user), sql, **more)
    return info, engine.queries[-1] if engine.queries else None
