"""The delegation service put together: store, tasks, worker, the way to the catalog, HTTP.

A maintainer must not break: the worker ends before the store and the way to the catalog do.
"""

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cynosure import __version__
from cynosure.api.app import RequestLimits, Service, make_service
from cynosure.api.delegation.errors import respond
from cynosure.api.delegation.gate import DelegationGate
from cynosure.api.delegation.routes import delegation_routes
from cynosure.api.delegation.wire import ErrorResponse
from cynosure.api.health import Readiness, health_routes
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.auth.tokens.oidc.keys import IssuerKeys
from cynosure.auth.tokens.service_tokens import EXECUTE_TASKS, ServiceTokenVerifier
from cynosure.client.api import ApiClient, realm_headers
from cynosure.client.http import HttpClient
from cynosure.client.tls import ClientTls
from cynosure.client.tokens import TOKEN_PATH, ClientCredentials, TokenSource
from cynosure.common.clock import Clock
from cynosure.common.delegated.settings import ClientTlsSettings
from cynosure.delegation.access_http import CatalogOverHttp
from cynosure.delegation.jobs.registry import open_jobs
from cynosure.delegation.service.service import TaskService
from cynosure.delegation.spark.runner import make_spark_runner
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.worker.worker import Worker
from cynosure.persistence.spi import RealmId
from cynosure.server.settings import Settings

_KEYS_PATH: Final = "/api/catalog/v1/oauth/jwks"
_KEYS_TIMEOUT_S: Final = 5.0
_KEYS_INTERVAL_S: Final = 1.0
"""The catalog is ours: it may be asked for its keys this often."""
_INSTANCE_FILE: Final = "delegation.instance"

SCHEMES: Final = MappingProxyType(
    {
        "OAuth2": {
            "type": "oauth2",
            "description": "A token that the catalog makes for itself; over TLS also its certificate.",
            "flows": {
                "clientCredentials": {
                    "tokenUrl": TOKEN_PATH,
                    "scopes": {EXECUTE_TASKS: "Allows submitting tasks to the Delegation Service."},
                }
            },
        },
        "BearerAuth": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    }
)


@dataclass(frozen=True, slots=True)
class DelegationProcess:
    """What one process of the service has open."""

    public: Service
    readiness: Readiness
    worker: Worker


@asynccontextmanager
async def open_delegation(
    settings: Settings, credentials: ClientCredentials, clock: Clock, rng: random.Random
) -> AsyncIterator[DelegationProcess]:
    """Open one process of the service; its worker has begun. Closing it without a drain gives tasks back."""
    service = settings.delegation.service
    realm = RealmId(service.realm)
    readiness = Readiness(clock)
    async with (
        open_task_store(settings.task_store_url.reveal(), realm, clock=clock, rng=rng) as store,
        HttpClient(
            service.catalog_url,
            clock=clock,
            rng=rng,
            tls=client_tls(service.catalog_url, service.catalog_tls),
        ) as http,
    ):

        async def check_store() -> None:
            await store.next_due_us()

        readiness.register("store", check_store)
        headers = realm_headers(realm)
        catalog = CatalogOverHttp(
            ApiClient(http, tokens=TokenSource(http, credentials, clock, headers=headers), realm=realm),
            storage=settings.storage,
            file_locations=service.file_locations,
            clock=clock,
        )
        tasks = TaskService(store, realm=realm, clock=clock, jobs=open_jobs(), settings=settings.delegation)
        readiness.on_shutdown(tasks.stop_waiting)
        spark = make_spark_runner(settings.delegation, clock, credentials)
        worker = Worker(
            tasks, catalog=catalog, instance=load_instance(settings.server.data_dir), rng=rng, spark=spark
        )

        async def fetch(path: str) -> bytes:
            return (await http.request("GET", path, headers=headers, timeout_s=_KEYS_TIMEOUT_S)).body

        issuer = settings.auth.tokens.issuer
        keys = IssuerKeys(issuer, _KEYS_PATH, fetch, clock, min_interval_s=_KEYS_INTERVAL_S)
        gate = DelegationGate(
            ServiceTokenVerifier(keys, clock, issuer=issuer, realm=realm),
            realm=realm,
            client_names=service.client_names if service.certificate is not None else None,
        )
        routes = [
            *health_routes(readiness),
            METRICS_ROUTE,
            *delegation_routes(tasks, realm=realm, clock=clock),
        ]
        public = make_service(
            routes,
            title="Cynosure delegation service",
            version=__version__,
            clock=clock,
            rng=rng,
            limits=RequestLimits(
                max_body_bytes=settings.server.max_body_bytes,
                body_timeout_s=settings.server.body_timeout.total_seconds(),
                request_timeout_s=settings.server.request_timeout.total_seconds(),
            ),
            access_log=settings.server.access_log,
            gate=gate,
            schemes=SCHEMES,
            respond=respond,
            error_type=ErrorResponse,
        )
        try:
            # The lock on the data directory says that nobody else has this name now.
            await worker.start(is_predecessor_dead=True)
            yield DelegationProcess(public, readiness, worker)
        finally:
            await worker.close()
            await spark.close()
            await keys.close()


def client_tls(url: str, tls: ClientTlsSettings) -> ClientTls | None:
    """TLS towards this address; `None` where there is none."""
    return ClientTls(tls.ca, tls.certificate, tls.key) if url.startswith("https:") else None


def load_instance(data_dir: Path) -> str:
    """The name of this data directory among all instances of the service; made once."""
    path = data_dir / _INSTANCE_FILE
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text("ascii").strip()
    name = f"instance-{os.urandom(8).hex()}"
    with os.fdopen(fd, "w") as file:
        file.write(f"{name}\n")
    return name
