"""The gateway put together: the way to the catalog, engines, statements, HTTP.

A maintainer must not break: statements end before the engines that run them, and those before the way to the
catalog, which a last audit event may still need.
"""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from cynosure import __version__
from cynosure.api.app import RequestLimits, Service, make_service
from cynosure.api.health import Readiness, health_routes
from cynosure.api.metrics import METRICS_ROUTE
from cynosure.api.query.errors import QueryErrorEnvelope, respond
from cynosure.api.query.gate import QueryGate
from cynosure.api.query.pages import ARROW
from cynosure.api.query.routes import StatementHandlers, query_routes
from cynosure.api.query.wire import MAX_WAIT_S, GatewayConfig
from cynosure.client.http import HttpClient
from cynosure.client.tokens import ClientCredentials
from cynosure.common.clock import Clock
from cynosure.query.catalog_access.http import HttpCatalogSessions
from cynosure.query.coordinator.service import StatementService
from cynosure.query.coordinator.statement import Statements
from cynosure.query.settings import QuerySettings
from cynosure.server.delegation_wiring import client_tls
from cynosure.server.gateway_engines import open_engines
from cynosure.server.settings import Settings
from cynosure.storage.settings import StorageSettings

_CATALOG_LIVE: Final = "/health/live"
_CHECK_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """What one process of the gateway has open."""

    public: Service
    statements: Statements
    begin_shutdown: Callable[[], None]
    """Take no more statements."""
    count_unfinished: Callable[[], int]
    engines: list[str]


@asynccontextmanager
async def open_gateway(
    settings: Settings, credentials: ClientCredentials, clock: Clock, rng: random.Random
) -> AsyncIterator[GatewayProcess]:
    """Open one gateway. Closing it ends what runs."""
    query = settings.query
    gateway = query.gateway
    readiness = Readiness(clock)
    tls = client_tls(gateway.catalog_url, gateway.catalog_tls)
    async with (
        HttpClient(gateway.catalog_url, clock=clock, rng=rng, tls=tls) as http,
        open_engines(query, settings.server.data_dir, clock) as engines,
    ):

        async def check_catalog() -> None:
            await http.request("GET", _CATALOG_LIVE, timeout_s=_CHECK_S)

        readiness.register("catalog", check_catalog)
        statements = StatementService(
            query,
            clock,
            rng,
            local=engines.local,
            spark=engines.spark,
            cluster=engines.cluster,
            storage=reader_storage(settings.storage),
            file_roots=gateway.file_locations,
            memory_ratio=engines.memory_ratio,
        )
        handlers = StatementHandlers(statements, config_of(query), clock)
        readiness.on_shutdown(handlers.begin_shutdown)
        sessions = HttpCatalogSessions(
            http,
            credentials,
            clock,
            # Iceberg's own reader keeps to those that it began with.
            renews_credentials=query.spark.scan != "native",
        )
        public = make_service(
            [*health_routes(readiness), METRICS_ROUTE, *query_routes(handlers)],
            title="Cynosure gateway",
            version=__version__,
            clock=clock,
            rng=rng,
            limits=RequestLimits(
                max_body_bytes=settings.server.max_body_bytes,
                body_timeout_s=settings.server.body_timeout.total_seconds(),
                request_timeout_s=settings.server.request_timeout.total_seconds(),
            ),
            access_log=settings.server.access_log,
            gate=QueryGate(sessions),
            respond=respond,
            error_type=QueryErrorEnvelope,
        )
        try:
            yield GatewayProcess(
                public, statements, readiness.begin_shutdown, statements.count_unfinished, engines.names
            )
        finally:
            await statements.close()


def config_of(query: QuerySettings) -> GatewayConfig:
    """What clients are told."""
    return GatewayConfig(
        version=__version__,
        dialect="spark",
        page_rows=query.page_rows,
        max_sql_bytes=query.max_sql_bytes,
        max_wait_seconds=MAX_WAIT_S,
        timeout_seconds=query.timeout.total_seconds(),
        formats=["application/json", ARROW.decode("ascii")],
    )


def reader_storage(storage: StorageSettings) -> dict[str, Any]:
    """What of these settings matters to whoever reads files, as plain values: it goes to other machines."""
    found: dict[str, Any] = {
        "connect_timeout_s": storage.connect_timeout.total_seconds(),
        "stall_timeout_s": storage.stall_timeout.total_seconds(),
        "operation_timeout_s": storage.operation_timeout.total_seconds(),
        "retries": storage.retries,
    }
    if storage.ca_file is not None:
        found["ca_pem"] = storage.ca_file.read_text("ascii")
    return found
