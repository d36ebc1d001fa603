"""The whole API of a federated catalog in one process, as one caller has it."""

import random

import httpx

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.management.routes import management_routes
from cynosure.api.polaris.routes import polaris_routes
from cynosure.api.router import Route
from cynosure.auth.caller import Caller
from cynosure.common.clock import SystemClock
from cynosure.testing.small_access import CallerGate
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import Far

BASE = "/api/catalog"


def routes_of(far: Far) -> list[Route]:
    """All that is served of catalogs."""
    catalogs = Catalogs(far.directory, far.federation)
    return [
        *iceberg_routes(catalogs),
        *polaris_routes(catalogs),
        *cynosure_routes(catalogs),
        *management_routes(catalogs, far.people.identities),
    ]


def client_of(far: Far, caller: Caller = ROOT) -> httpx.AsyncClient:
    """A client that is let in as this caller."""
    service = make_service(
        routes_of(far),
        title="test",
        version="1",
        clock=SystemClock(),
        rng=random.Random(1),
        gate=CallerGate(caller),
    )
    transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://test")
