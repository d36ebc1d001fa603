"""The service's application in this process: real tasks and workers, jobs by script, real tokens."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from cynosure.api.app import RequestLimits, Service, make_service
from cynosure.api.delegation.errors import respond
from cynosure.api.delegation.gate import DelegationGate
from cynosure.api.delegation.routes import delegation_routes
from cynosure.api.delegation.wire import ErrorResponse
from cynosure.auth.tokens.signing_keys import generate_private
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.settings import DelegationSettings, PurgeRetrySettings, RetriesSettings
from cynosure.delegation.service.service import TaskService
from cynosure.persistence.spi import RealmId
from cynosure.server.delegation_wiring import SCHEMES
from cynosure.testing.service_tokens import TokenMaker
from cynosure.testing.small_delegation import REALM, SmallDelegation

BASE = "/delegation-service/api/v1"
SYNC = f"{BASE}/tasks/execute/synchronous"
ONCE = DelegationSettings(retry=RetriesSettings(table_purge=PurgeRetrySettings(max_attempts=1)))


def make_app(
    tasks: TaskService,
    catalog: TokenMaker,
    *,
    request_timeout_s: float = 30.0,
    client_names: tuple[str, ...] | None = None,
) -> Service:
    gate = DelegationGate(catalog.make_verifier(), realm=RealmId(REALM), client_names=client_names)
    return make_service(
        delegation_routes(tasks, realm=REALM, clock=catalog.clock),
        title="Delegation",
        version="1",
        clock=catalog.clock,
        rng=random.Random(1),
        limits=RequestLimits(request_timeout_s=request_timeout_s),
        gate=gate,
        schemes=SCHEMES,
        respond=respond,
        error_type=ErrorResponse,
    )


def payload(name: str = "t", **common: Any) -> dict[str, Any]:
    """As the proposal has it."""
    return {
        "common_payload": {
            "operation_type": "TABLE_PURGE",
            "request_timestamp_utc": "2025-06-11T16:21:00Z",
            "realm_identifier": REALM,
            "polaris_correlation_id": f"drop-{name}",
            **common,
        },
        "operation_parameters": {
            "table_identity": {
                "table_entity_id": "7001",
                "catalog_name": "lake",
                "namespace_levels": ["NS1", "NESTED1"],
                "table_name": name,
            },
            "properties": {"skipTrash": "true"},
        },
    }


@dataclass
class World:
    """A service, and the catalog that may give it orders."""

    small: SmallDelegation
    catalog: TokenMaker
    clock: SystemClock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        self.tasks = self.small.make_service(clock=self.clock)
        self.service = make_app(self.tasks, self.catalog)

    def app(self, **more: Any) -> Any:
        return make_app(self.tasks, self.catalog, **more).app

    def client(self, app: Any = None, token: str | None = None) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {token or self.catalog.sign()}"}
        transport = httpx.ASGITransport(app or self.service.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers)

    async def work(self) -> None:
        """Begin to work on tasks."""
        await self.small.start_worker(service=self.tasks)


@pytest.fixture(scope="session")
def private_key() -> rsa.RSAPrivateKey:
    return generate_private()


@pytest.fixture
async def world(private_key: rsa.RSAPrivateKey) -> AsyncIterator[World]:
    small = SmallDelegation(ONCE)
    yield World(small, TokenMaker(SystemClock(), private_key))
    await small.close()


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a good token."""
    async with world.client() as client:
        yield client
