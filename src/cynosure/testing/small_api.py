"""The Iceberg API of a catalog in one process, without a server and without asking who it is."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.gate import Gate
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.directory import Directory
from cynosure.common.clock import SystemClock
from cynosure.federation.seeing import Federation


@asynccontextmanager
async def open_client(
    directory: Directory,
    catalog: str = "lake",
    *,
    federation: Federation | None = None,
    gate: Gate | None = None,
) -> AsyncIterator[httpx.AsyncClient]:
    """Whoever asks is the operator unless a gate says otherwise; paths are below `/v1/{catalog}/`."""
    service = make_service(
        iceberg_routes(Catalogs(directory, federation)),
        title="test",
        version="1",
        clock=SystemClock(),
        rng=random.Random(1),
        gate=gate or OperatorGate(),
    )
    transport = httpx.ASGITransport(app=service.app)
    base = f"http://test/api/catalog/v1/{catalog}/"
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        yield client
