"""The Iceberg API of a catalog in one process, without a server and without asking who it is."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from cynosure.api.app import make_service
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.directory import Directory
from cynosure.common.clock import SystemClock


@asynccontextmanager
async def open_client(directory: Directory, catalog: str = "lake") -> AsyncIterator[httpx.AsyncClient]:
    """Whoever asks is the operator; paths are below `/v1/{catalog}/`."""
    service = make_service(
        iceberg_routes(directory),
        title="test",
        version="1",
        clock=SystemClock(),
        rng=random.Random(1),
        gate=OperatorGate(),
    )
    transport = httpx.ASGITransport(app=service.app)
    base = f"http://test/api/catalog/v1/{catalog}/"
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        yield client
