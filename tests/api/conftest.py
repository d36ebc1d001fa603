"""A service from routes, and a client that speaks to it without a network."""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from cynosure.api.app import RequestLimits, make_service
from cynosure.api.gate import Gate
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock
from cynosure.common.telemetry.metrics import start_metrics, stop_metrics
from cynosure.testing.harness.clock import ManualClock
from tests.auth.tokens.world import TokenWorld, open_world

ClientFor = Callable[..., httpx.AsyncClient]


@pytest.fixture
def client_for() -> ClientFor:
    """Makes a client of a service with these routes, inside all middleware. Left out, the gate is open."""

    def make(
        *routes: Route,
        limits: RequestLimits = RequestLimits(),  # noqa: B008
        gate: Gate = OperatorGate(),  # noqa: B008
    ) -> httpx.AsyncClient:
        service = make_service(
            routes,
            title="test",
            version="1",
            clock=SystemClock(),
            rng=random.Random(1),
            limits=limits,
            gate=gate,
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        return httpx.AsyncClient(transport=transport, base_url="http://test")

    return make


@pytest.fixture
def metrics() -> Iterator[None]:
    with _recording():
        yield


@contextmanager
def _recording() -> Iterator[None]:
    start_metrics()
    try:
        yield
    finally:
        stop_metrics()


@pytest.fixture
async def world(anyio_backend: str, manual_clock: ManualClock) -> AsyncIterator[TokenWorld]:
    """Principals and tokens on a fresh store."""
    async with open_world(manual_clock) as opened:
        yield opened
