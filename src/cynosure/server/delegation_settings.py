"""Settings of delegated work that are fine one by one and wrong together.

A maintainer must not break: this imports nothing heavy, because every command on a data directory reads
settings.
"""

from datetime import timedelta

from cynosure.common.addresses import is_loopback
from cynosure.common.delegated.settings import ClientTlsSettings, DelegationSettings, ServiceSettings
from cynosure.common.errors import Misconfigured
from cynosure.server.safe_settings import require_pair, require_principal, require_safe_url


def check_delegation(settings: DelegationSettings, *, request_timeout: timedelta) -> None:
    """Refuse what neither a catalog nor a service could work with."""
    if settings.task_type == "delegated" and settings.endpoint is None:
        raise Misconfigured(
            "Work is to be delegated, and nobody says to whom",
            key="delegation.endpoint",
            fix="Set delegation.endpoint to the address of a delegation service, or task_type to local.",
        )
    if settings.endpoint is not None:
        require_safe_url(settings.endpoint, "delegation.endpoint")
    if settings.sync_timeout >= request_timeout:
        raise Misconfigured(
            "A request to purge would wait for longer than anybody waits for its answer",
            key="delegation.sync_timeout",
            fix="Make delegation.sync_timeout shorter than server.request_timeout.",
        )
    require_safe_url(settings.service.catalog_url, "delegation.service.catalog_url")
    _check_client(settings.tls, "delegation.tls")
    _check_client(settings.service.catalog_tls, "delegation.service.catalog_tls")
    _check_listener(settings.service)


def check_service(service: ServiceSettings) -> None:
    """Refuse to serve where others could listen, or without a way into the catalog."""
    if service.certificate is None and not is_loopback(service.host):
        raise Misconfigured(
            "A delegation service beyond this machine must know its clients, and they it",
            host=service.host,
            fix="Set delegation.service.certificate, key and client_ca (`cynosure certs init` makes them), "
            "or listen on 127.0.0.1.",
        )
    require_principal(service, table="delegation.service", command="cynosure delegation init")


def _check_listener(service: ServiceSettings) -> None:
    require_pair(service.certificate, service.key, "delegation.service")
    if (service.client_ca is None) != (service.certificate is None):
        raise Misconfigured(
            "Over TLS the service demands certificates of its clients, and only over TLS",
            key="delegation.service.client_ca",
            fix="Set delegation.service.certificate, key and client_ca, or none of them.",
        )
    if not service.client_names:
        raise Misconfigured(
            "Nobody could give orders to the service",
            key="delegation.service.client_names",
            fix="Name the clients as their certificates do: cynosure-catalog, say.",
        )


def _check_client(tls: ClientTlsSettings, key: str) -> None:
    require_pair(tls.certificate, tls.key, key)
